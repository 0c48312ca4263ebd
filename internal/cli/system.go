package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/tui/quietstart"
)

// System is what commands take from the process. Tests pass their own.
type System struct {
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	Env    func(string) string
	Now    func() time.Time
	InTTY  bool
	OutTTY bool
	ErrTTY bool
	Width  int // of the terminal, 0 = unknown
	// Free is how many bytes the disk of a folder has left for us; nil asks this machine.
	Free func(folder string) (int64, error)
}

// free is how many bytes the disk of a folder has left.
func (s System) free(folder string) (int64, error) {
	if s.Free != nil {
		return s.Free(folder)
	}
	return freeBytes(folder)
}

// freeBytes returns how many bytes the disk of a folder has left.
func freeBytes(folder string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // it is a uint32 on macOS
}

// Main runs the process's command and returns its exit code.
func Main(args []string) int {
	if err := quietstart.Restore(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		return int(job.ExitFailed)
	}
	ctx, stop := interruptible(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return int(Run(ctx, processSystem(), args))
}

func processSystem() System {
	s := System{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv, Now: faultpoint.Now,
		InTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTTY: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
	}
	if s.OutTTY {
		if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			s.Width = width
		}
	}
	return s
}

// interruptible ends the context with errInterrupted at the first of the signals; the second one kills the process. A
// signal that the caller ignores, as nohup does with SIGHUP, stays ignored.
func interruptible(parent context.Context, ends ...os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	ends = slices.DeleteFunc(ends, signal.Ignored)
	if len(ends) > 0 { // Notify without signals means all of them
		signal.Notify(signals, ends...)
	}
	go func() {
		select {
		case <-signals:
			signal.Stop(signals)
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}
