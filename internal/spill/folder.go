package spill

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/kappactl/kappactl/internal/render"
)

const pattern = "kappactl-spill-*"

// Folder is a folder of this process. It is locked while the process lives, however the process ends.
type Folder struct {
	Path string
	held *os.File
}

// NewFolder makes a folder in dir and removes those there whose process has ended: a killed agent cannot remove its
// own.
func NewFolder(dir string) (*Folder, error) {
	old, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, fmt.Errorf("look for old folders in %s: %w", dir, err)
	}
	for _, path := range old {
		// A folder that cannot be removed, such as another user's, does no harm.
		if f, err := lock(path); err == nil {
			_ = f.Close()
		}
	}
	for {
		path, err := os.MkdirTemp(dir, pattern)
		if err != nil {
			return nil, fmt.Errorf("make a folder to spill into: %w", err)
		}
		f, err := lock(path)
		if !errors.Is(err, errTaken) {
			return f, err
		}
	}
}

// errTaken is returned for a folder that another process holds, or has just removed.
var errTaken = errors.New("the folder belongs to another process")

func lock(path string) (*Folder, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errTaken
	}
	if err != nil {
		return nil, fmt.Errorf("open the spill folder: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errTaken
		}
		return nil, fmt.Errorf("lock the spill folder: %w", err)
	}
	// Between MkdirTemp and Flock, another process may have taken the folder for an old one and removed it.
	mine, err := f.Stat()
	there, err2 := os.Stat(path)
	if err != nil || err2 != nil || !os.SameFile(mine, there) {
		f.Close()
		return nil, errTaken
	}
	return &Folder{Path: path, held: f}, nil
}

// Close removes the folder.
func (f *Folder) Close() error {
	return errors.Join(os.RemoveAll(f.Path), f.held.Close())
}

// Limit returns how many bytes the queries of a process may spill together: half of the free space of the folder's
// disk, so that other programs that write there do not run out of it. free returns the free space. Limit returns 0 when
// that is unknown, and logs a warning when the limit is below memory: records that do not fit in memory are then read
// in smaller parts, which takes longer.
func (f *Folder) Limit(memory int64, free func(folder string) (int64, error), log *slog.Logger) int64 {
	available, err := free(f.Path)
	if err != nil {
		log.Warn("how much may be spilled is not known", "folder", f.Path, "error", err)
		return 0
	}
	limit := max(available/2, 1)
	if limit < memory {
		log.Warn("little room to spill: what does not fit into agent.memory is read in smaller parts; agent.temp names "+
			"another folder",
			"folder", f.Path, "room", render.Bytes(limit), "memory", render.Bytes(memory))
	}
	return limit
}
