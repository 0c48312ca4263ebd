package archive

import (
	"strings"
	"sync"

	"github.com/kappactl/kappactl/internal/job"
)

// Locations opens locations: folders, and buckets of S3 as the settings reach them. The zero value reaches AWS with
// what the environment has. It is safe for concurrent use.
type Locations struct {
	S3 S3

	mu     sync.Mutex
	client *s3Client // nil: not made
}

// Open returns the location of a text that job.ParseLocation took. It asks nothing of the location: an error is one of
// the settings.
func (ls *Locations) Open(text string) (Location, error) {
	clean, err := job.ParseLocation(text)
	if err != nil {
		return nil, err
	}
	if path, ok := job.LocationFolder(clean); ok {
		return folder(path), nil
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.client == nil {
		if ls.client, err = newS3Client(ls.S3); err != nil {
			return nil, err
		}
	}
	name, prefix, _ := strings.Cut(strings.TrimPrefix(clean, "s3://"), "/")
	if prefix != "" {
		prefix += "/"
	}
	return bucket{client: ls.client, location: clean, name: name, prefix: prefix}, nil
}

// Close closes the connections to S3 that are idle. The locations can be used all the same.
func (ls *Locations) Close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.client != nil {
		ls.client.transport.CloseIdleConnections()
	}
}
