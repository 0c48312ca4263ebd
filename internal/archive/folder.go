package archive

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// folder is a location in the file system.
type folder string

// temporary begins the names of files that are being written.
const temporary = ".writing-"

func (f folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

// Reach passes over a folder that is not there: it is made at its first use.
func (f folder) Reach(context.Context) error {
	info, err := os.Stat(string(f))
	switch {
	case Missing(err):
		return nil
	case err == nil && !info.IsDir():
		return &fs.PathError{Op: "open", Path: string(f), Err: syscall.ENOTDIR}
	}
	return err
}

// Put writes the file under a temporary name, syncs it, renames it and syncs the folders, so that the name is there
// only with the whole file behind it.
func (f folder) Put(ctx context.Context, name, path string) error {
	to := f.path(name)
	made, err := makeFolders(filepath.Dir(to))
	if err != nil {
		return err
	}
	written, err := copyInto(ctx, filepath.Dir(to), path)
	if err != nil {
		return err
	}
	if err := os.Rename(written, to); err != nil {
		return errors.Join(err, os.Remove(written))
	}
	for _, dir := range append(made, filepath.Dir(to)) {
		if err := syncFolder(dir); err != nil {
			return err
		}
	}
	return nil
}

// makeFolders creates dir and what is missing above it, and returns the folders that have a new entry.
func makeFolders(dir string) (changed []string, err error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || !errors.Is(err, fs.ErrNotExist) {
			break
		}
		changed = append(changed, filepath.Dir(at))
	}
	return changed, os.MkdirAll(dir, 0o750)
}

// copyInto copies a file into dir under a temporary name and syncs it.
func copyInto(ctx context.Context, dir, path string) (_ string, err error) {
	from, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.CreateTemp(dir, temporary)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, reader{ctx, from})
	if err == nil {
		err = to.Chmod(0o640)
	}
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return "", errors.Join(err, os.Remove(to.Name()))
	}
	return to.Name(), nil
}

// reader ends with its context.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (f folder) Open(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(f.path(name))
}

func (f folder) Delete(_ context.Context, name string) error {
	if err := os.Remove(f.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (f folder) List(ctx context.Context, dir string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		err := filepath.WalkDir(f.path(dir), func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil // removed meanwhile
			case err != nil:
				return err
			case ctx.Err() != nil:
				return ctx.Err()
			case d.IsDir() || strings.HasPrefix(d.Name(), temporary):
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return nil //nolint:nilerr // removed meanwhile
			}
			name, err := filepath.Rel(string(f), path)
			if err == nil && !yield(Entry{Name: filepath.ToSlash(name), Bytes: info.Size()}, nil) {
				return fs.SkipAll
			}
			return err
		})
		if err != nil {
			yield(Entry{}, err)
		}
	}
}
