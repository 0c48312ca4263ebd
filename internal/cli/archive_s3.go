package cli

import (
	"context"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/config"
)

// locationsOf opens the locations of archives, buckets as the settings reach them.
func locationsOf(s config.Settings) *archive.Locations {
	of := s.Archive.S3
	out := &archive.Locations{S3: archive.S3{
		Endpoint: of.Endpoint, Region: of.Region, Addressing: of.Addressing, CAFile: of.CAFile,
	}}
	if of.AccessKeyID != "" {
		out.S3.Keys = func(ctx context.Context) (id, secret string, err error) {
			text, err := of.Secret.Read(ctx) // a new secret needs no restart
			return of.AccessKeyID, string(text), err
		}
	}
	return out
}
