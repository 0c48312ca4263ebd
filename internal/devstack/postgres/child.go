package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const (
	fast = syscall.SIGINT  // ends sessions, writes a checkpoint
	quit = syscall.SIGQUIT // ends at once; the next start recovers
)

// poll is the interval of checking files and processes that cannot be waited for.
const poll = 20 * time.Millisecond

// child is a postmaster started by this process.
type child struct {
	pid  int
	done chan struct{} // closed when it has ended
	err  error         // how it ended; valid after done
	log  string
	from int64 // offset in the log at which this start begins
}

func startChild(c Config, acc *account, args []string) (*child, error) {
	out, err := os.OpenFile(c.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the server's log: %w", err)
	}
	defer out.Close()
	from, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("open the server's log: %w", err)
	}
	cmd := exec.Command(c.Bin.program("postgres"), args...)
	cmd.Dir, cmd.Env = c.cluster(), environment()
	cmd.Stdout, cmd.Stderr = out, out // stdin stays /dev/null
	cmd.SysProcAttr = acc.attributes()
	if c.DieWithParent {
		dieWithParent(cmd.SysProcAttr)
	}
	ch := &child{done: make(chan struct{}), log: c.log(), from: from}
	started := make(chan error)
	go func() {
		// The death signal is sent when the starting thread ends, so this thread is kept until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ch.done)
		err := cmd.Start()
		if err == nil {
			ch.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			ch.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, &StartError{What: "start postgres", Err: err}
	}
	return ch, nil
}

// end sends the signal and waits; after patience it sends quit and then KILL.
func (ch *child) end(sig syscall.Signal, patience time.Duration) error {
	for _, s := range []syscall.Signal{sig, quit, syscall.SIGKILL} {
		if err := ch.signal(s); err != nil {
			return err
		}
		select {
		case <-ch.done:
			return nil
		case <-time.After(patience):
		}
	}
	return fmt.Errorf("the PostgreSQL server (pid %d) does not stop", ch.pid)
}

func (ch *child) signal(s syscall.Signal) error {
	select {
	case <-ch.done: // its pid may belong to another process by now
		return nil
	default:
	}
	if err := syscall.Kill(ch.pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal the PostgreSQL server (pid %d): %w", ch.pid, err)
	}
	return nil
}

// awaitReady waits until the postmaster file of this child contains ready.
func (c Config) awaitReady(ctx context.Context, ch *child) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		if pm, err := readPostmaster(c.cluster()); err == nil && pm.pid == ch.pid && pm.ready() {
			return nil
		}
		select {
		case <-ch.done:
			return &StartError{What: "PostgreSQL ended while starting", Err: ch.err, Log: ch.log, Tail: ch.said()}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// said returns the end of this child's output.
func (ch *child) said() string {
	f, err := os.Open(ch.log)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	text := make([]byte, min(4096, info.Size()-ch.from))
	n, _ := f.ReadAt(text, info.Size()-int64(len(text)))
	return tail(string(text[:n]), 3)
}
