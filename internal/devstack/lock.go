package devstack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kappactl/kappactl/internal/job"
)

// lock is the exclusive lock on a stack's folder. The system releases it when the process ends, however it ends.
type lock struct{ file *os.File }

func lockFolder(dir string, now time.Time) (*lock, error) {
	path := filepath.Join(dir, "dev.lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(heldBy(dir, path), f.Close())
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintf(f, "process %d since %s\n", os.Getpid(), now.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	}
	return &lock{f}, nil
}

func heldBy(dir, path string) error {
	holder := "another process"
	if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
		holder = strings.TrimSpace(string(text))
	}
	return &job.Refusal{
		Code:  job.ExitConflict,
		Cause: fmt.Sprintf("%s is in use by %s", dir, holder),
		Next:  "use that stack with: --config " + filepath.Join(dir, configFile) + ", or name another folder with --data",
	}
}

// release keeps the file: removing it would let two processes lock two files of that name.
func (l *lock) release() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("unlock the stack's folder: %w", err)
	}
	return nil
}
