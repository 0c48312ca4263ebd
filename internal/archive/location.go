package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/kappactl/kappactl/internal/job"
)

// Location is where files are: a folder or a bucket. Names are paths with slashes below it.
type Location interface {
	// Reach asks the location for a sign of life. A folder that is not there yet is one.
	Reach(ctx context.Context) error
	// Put stores a local file under a name, whole or not at all, and so that it survives a crash.
	Put(ctx context.Context, name, path string) error
	// Open reads a file. A file that is not there is fs.ErrNotExist; so is a location that is not.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	// List gives the files below a folder, in no order. A folder that is not there has none.
	List(ctx context.Context, folder string) iter.Seq2[Entry, error]
	// Delete removes a file; one that is not there is no error.
	Delete(ctx context.Context, name string) error
}

// Entry is a file at a location.
type Entry struct {
	Name  string
	Bytes int64
}

// copied copies up to most bytes of a file of a location and returns how many there are, and their SHA-256.
func copied(ctx context.Context, l Location, name string, to io.Writer, most int64) (bytes int64, sum []byte,
	err error,
) {
	r, err := l.Open(ctx, name)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	h := sha256.New()
	bytes, err = io.Copy(io.MultiWriter(to, h), io.LimitReader(r, most))
	return bytes, h.Sum(nil), err
}

// DamagedError is a file of the archive that is not what the manifest lists, or that is not there.
type DamagedError struct {
	job.Range
	Location, Name string
	Why            string
	Err            error // the cause; may be nil
}

// Unwrap gives the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

func (e *DamagedError) Error() string {
	return fmt.Sprintf("archive file %s/%s: %s", e.Location, e.Name, e.Why)
}

// Fetch copies the file of a manifest row to a local path and checks its size and hash while it copies: a *DamagedError
// when it is not the one that was published, fs.ErrNotExist when it is not there.
func Fetch(ctx context.Context, l Location, f FileRow, to io.Writer) error {
	n, got, err := copied(ctx, l, f.Name, to, f.Bytes+1)
	if Missing(err) {
		return err
	}
	if err != nil {
		return fmt.Errorf("read archive file %s/%s: %w", f.Location, f.Name, err)
	}
	damaged := func(why string) error {
		return &DamagedError{Range: f.Range, Location: f.Location, Name: f.Name, Why: why}
	}
	switch {
	case n > f.Bytes:
		return damaged(fmt.Sprintf("it is longer than the %d bytes that were published", f.Bytes))
	case n < f.Bytes:
		return damaged(fmt.Sprintf("it has %d bytes, %d were published", n, f.Bytes))
	case string(got) != string(f.SHA256):
		return damaged(fmt.Sprintf("its SHA-256 is %s, that of the published file was %s", hex.EncodeToString(got),
			hex.EncodeToString(f.SHA256)))
	}
	return nil
}

// Missing reports whether err is a file that is not there.
func Missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
