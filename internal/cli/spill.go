package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/kappactl/kappactl/internal/render"
)

const spillPattern = "kappactl-spill-*"

// spillFolder is a folder of this process for what does not fit in memory. It is locked while the process lives, however
// the process ends.
type spillFolder struct {
	path string
	held *os.File
}

// newSpillFolder makes one in dir, and removes those there whose process has ended: a killed agent cannot do it itself.
func newSpillFolder(dir string) (*spillFolder, error) {
	old, err := filepath.Glob(filepath.Join(dir, spillPattern))
	if err != nil {
		return nil, fmt.Errorf("look for old folders in %s: %w", dir, err)
	}
	for _, path := range old {
		// One that cannot be removed now, as another user's, is in nobody's way.
		if s, err := lockSpill(path); err == nil {
			_ = s.Close()
		}
	}
	for {
		path, err := os.MkdirTemp(dir, spillPattern)
		if err != nil {
			return nil, fmt.Errorf("make a folder to spill into: %w", err)
		}
		s, err := lockSpill(path)
		if !errors.Is(err, errSpillTaken) {
			return s, err
		}
	}
}

// errSpillTaken is a folder that another process holds, or has just removed.
var errSpillTaken = errors.New("the folder is another process's")

func lockSpill(path string) (*spillFolder, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errSpillTaken
	}
	if err != nil {
		return nil, fmt.Errorf("open the spill folder: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errSpillTaken
		}
		return nil, fmt.Errorf("lock the spill folder: %w", err)
	}
	// Between making and locking, another process may have taken it for an old one and removed it.
	mine, err := f.Stat()
	there, err2 := os.Stat(path)
	if err != nil || err2 != nil || !os.SameFile(mine, there) {
		f.Close()
		return nil, errSpillTaken
	}
	return &spillFolder{path: path, held: f}, nil
}

// spillRoom is how much of a disk's free space an agent's queries may take together: half of it, so that nobody else who writes there
// runs out of it.
func spillRoom(free int64) int64 { return max(free/2, 1) }

// room is how much may be spilled. With less than the queries may have in memory it says so: what does not fit is then read in
// smaller parts, which takes longer.
func (s *spillFolder) room(memory int64, free func(folder string) (int64, error), log *slog.Logger) int64 {
	n, err := free(s.path)
	if err != nil {
		log.Warn("how much may be spilled is not known", "folder", s.path, "error", err)
		return 0
	}
	if n := spillRoom(n); n < memory {
		log.Warn("little room to spill: what does not fit into agent.memory is read in smaller parts; agent.temp names another folder",
			"folder", s.path, "room", render.Bytes(n), "memory", render.Bytes(memory))
	}
	return spillRoom(n)
}

// Close removes the folder.
func (s *spillFolder) Close() error {
	return errors.Join(os.RemoveAll(s.path), s.held.Close())
}
