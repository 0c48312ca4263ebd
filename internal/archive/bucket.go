package archive

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/kappactl/kappactl/internal/retry"
)

// bucket is a location in an S3 bucket.
type bucket struct {
	client   *s3Client
	location string
	name     string
	prefix   string // with a slash at its end, or empty
}

// Put stores the file in one request: it is there whole, and durable, when the endpoint has answered. The endpoint
// compares it with its MD5 and, without TLS, with its SHA-256.
func (b bucket) Put(ctx context.Context, name, path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return b.client.try(ctx, b, name, func() error {
		body := io.NewSectionReader(f, 0, info.Size())
		_, err := b.client.core.Client.PutObject(ctx, b.name, b.prefix+name, body, info.Size(), minio.PutObjectOptions{
			DisableMultipart: true, SendContentMd5: true,
		})
		return err
	})
}

func (b bucket) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	d := &download{ctx: ctx, from: b, name: name}
	if err := b.client.try(ctx, b, name, d.begin); err != nil {
		return nil, err
	}
	return d, nil
}

func (b bucket) Delete(ctx context.Context, name string) error {
	err := b.client.try(ctx, b, name, func() error {
		return b.client.core.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{})
	})
	if Missing(err) {
		return nil
	}
	return err
}

func (b bucket) List(ctx context.Context, folder string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		o := minio.ListObjectsOptions{Prefix: b.prefix + folder + "/", Recursive: true}
		err := b.client.try(ctx, b, "", func() error {
			for found := range b.client.core.ListObjectsIter(ctx, b.name, o) {
				if found.Err != nil {
					return found.Err
				}
				o.StartAfter = found.Key // an attempt goes on where the last one failed
				if !strings.HasSuffix(found.Key, "/") && !yield(Entry{
					Name:  strings.TrimPrefix(found.Key, b.prefix),
					Bytes: found.Size,
				}, nil) {
					return nil
				}
			}
			return ctx.Err() // the library ends in silence
		})
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// Reach asks for one file: without an error, endpoint, credentials, bucket and region are right.
func (b bucket) Reach(ctx context.Context) error {
	return b.client.try(ctx, b, "", func() error {
		for found := range b.client.core.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true, MaxKeys: 1}) {
			return found.Err
		}
		return ctx.Err() // the library ends in silence
	})
}

// download reads an object. A connection that breaks is made again from where it broke.
type download struct {
	ctx  context.Context //nolint:containedctx // that of the Open which made it
	from bucket
	name string

	body     io.ReadCloser
	size, at int64
	tag      string
	failures int // in a row
}

func (d *download) begin() error {
	var o minio.GetObjectOptions
	if d.at > 0 {
		if err := o.SetRange(d.at, 0); err != nil {
			return err
		}
		if d.tag != "" {
			if err := o.SetMatchETag(d.tag); err != nil {
				return err
			}
		}
	}
	body, info, _, err := d.from.client.core.GetObject(d.ctx, d.from.name, d.from.prefix+d.name, o)
	if err != nil {
		return err
	}
	if d.body = body; d.at == 0 {
		d.size, d.tag = info.Size, info.ETag
	}
	return nil
}

func (d *download) Read(b []byte) (int, error) {
	for {
		n, err := d.body.Read(b)
		d.at += int64(n)
		if n > 0 {
			d.failures = 0
			return n, nil
		}
		if err == nil || errors.Is(err, io.EOF) {
			return 0, err
		}
		if err := d.again(err); err != nil {
			return 0, err
		}
	}
}

// again continues behind a failure.
func (d *download) again(failed error) error {
	if d.ctx.Err() != nil {
		return d.ctx.Err()
	}
	explained, passes := d.from.client.explain(failed, d.from, d.name)
	if d.failures++; !passes || d.failures == requestTries {
		return explained
	}
	_ = d.body.Close() // it has failed
	if retry.Sleep(d.ctx, retry.Backoff(d.failures, firstPause, longestPause)) != nil {
		return d.ctx.Err()
	}
	return d.from.client.try(d.ctx, d.from, d.name, d.begin)
}

func (d *download) Close() error { return d.body.Close() }
