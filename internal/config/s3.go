package config

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// s3Table lists the settings of buckets.
func s3Table(s *Settings) []Setting {
	s3 := &s.Archive.S3
	endpoint := text(&s3.Endpoint, "endpoint", parseEndpoint)
	take := func(from func() Source) func() {
		return func() {
			s3.Secret = from()
			s.forget("archive.s3.secret_access_key", "archive.s3.secret_access_key_file", "archive.s3.secret_access_key_command")
		}
	}
	return []Setting{
		{
			Name: "archive.s3.endpoint", Env: "KAPPACTL_ARCHIVE_S3_ENDPOINT",
			Usage: "https://HOST[:PORT] of the object store", Default: "AWS", fill: func(Env) {}, value: endpoint,
		},
		{
			Name: "archive.s3.region", Env: "KAPPACTL_ARCHIVE_S3_REGION",
			Usage: "region of the buckets", Default: "what the endpoint answers", fill: func(Env) {}, value: word(&s3.Region),
		},
		{
			Name: "archive.s3.addressing", Env: "KAPPACTL_ARCHIVE_S3_ADDRESSING",
			Usage:   "where the bucket is named: path (ENDPOINT/BUCKET) or host (BUCKET.ENDPOINT)",
			Default: "host for AWS, path for others", fill: func(Env) {}, value: oneOf(&s3.Addressing, "path", "host"),
		},
		{
			Name: "archive.s3.ca_file", Env: "KAPPACTL_ARCHIVE_S3_CA_FILE",
			Usage: "roots for the certificate of the endpoint", value: path(&s3.CAFile),
		},
		{
			Name: "archive.s3.access_key_id", Env: "KAPPACTL_ARCHIVE_S3_ACCESS_KEY_ID",
			Usage:   "access key",
			Default: "AWS_ACCESS_KEY_ID and the like, AWS's credentials file, or the role of the machine", fill: func(Env) {},
			value: word(&s3.AccessKeyID),
		},
		{
			Name: "archive.s3.secret_access_key_file", Env: "KAPPACTL_ARCHIVE_S3_SECRET_ACCESS_KEY_FILE",
			Usage: "file with the secret of the access key, on its first line",
			value: path(&s3.Secret.File), then: take(func() Source { return Source{File: s3.Secret.File} }),
		},
		{
			Name:  "archive.s3.secret_access_key_command",
			Usage: "program and arguments that print the secret of the access key", value: command(&s3.Secret.Command),
		},
		{
			Name: "archive.s3.secret_access_key", Env: "KAPPACTL_ARCHIVE_S3_SECRET_ACCESS_KEY",
			Usage: "the secret of the access key; never in the file", noFile: true,
			value: secret(&s3.Secret.Value), then: take(func() Source { return Source{Value: s3.Secret.Value} }),
		},
	}
}

func (s S3) check() error {
	if (s.AccessKeyID == "") != s.Secret.IsZero() {
		return usage("archive.s3 has one of access_key_id and its secret without the other",
			"set archive.s3.access_key_id and archive.s3.secret_access_key_file, or neither")
	}
	return nil
}

// parseEndpoint reads http:// or https://HOST[:PORT]. Its error does not repeat a text that may hold credentials.
func parseEndpoint(given string) (string, error) {
	u, err := url.Parse(given)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil &&
		strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == "" {
		return u.Scheme + "://" + u.Host, nil
	}
	cause := "it is not an endpoint"
	if !strings.Contains(given, "@") {
		cause = fmt.Sprintf("%q is not an endpoint", given)
	}
	return "", strict.Want(cause, "write https://HOST[:PORT], without a bucket: that belongs to archive.location")
}
