package programs

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	keptLines = 5    // of standard error, for status
	longLine  = 2000 // bytes of a line that are logged and kept
)

// process is a running program with its children.
type process struct {
	cmd   *exec.Cmd
	began time.Time
	done  chan struct{} // closed when it has ended and its output is read
	how   string        // how it ended, set before done is closed
	ok    bool          // with exit code 0

	mu    sync.Mutex
	lines []string // the last of its standard error; guarded by mu
}

// start runs a command as a process group of its own, in a working folder, with nothing of this process but what env
// has.
func start(command, env []string, dir string, log *slog.Logger, now time.Time) (*process, error) {
	p := &process{began: now, done: make(chan struct{})}
	p.cmd = exec.Command(command[0], command[1:]...) //nolint:gosec // the agent's settings allow it
	p.cmd.Env, p.cmd.Dir = env, dir
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second // a child may still hold its output open
	out, outW := io.Pipe()
	errs, errsW := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = outW, errsW
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	log = log.With("pid", p.cmd.Process.Pid)
	var reading sync.WaitGroup
	reading.Go(func() { lines(out, func(line string) { log.Info(line, "from", "stdout") }) })
	reading.Go(func() {
		lines(errs, func(line string) {
			log.Info(line, "from", "stderr")
			p.keep(line)
		})
	})
	go func() {
		defer close(p.done)
		err := p.cmd.Wait()
		p.signal(syscall.SIGKILL) // what it left behind in its group
		_, _ = outW.Close(), errsW.Close()
		reading.Wait()
		p.how, p.ok = ending(p.cmd.ProcessState, err)
	}()
	return p, nil
}

// lines gives each line of r to f, cut to longLine bytes.
func lines(r io.Reader, f func(string)) {
	b := bufio.NewReaderSize(r, longLine)
	for {
		line, isPrefix, err := b.ReadLine()
		if err != nil {
			_, _ = io.Copy(io.Discard, r)
			return
		}
		f(clean(line))
		for isPrefix && err == nil {
			_, isPrefix, err = b.ReadLine()
		}
	}
}

// clean makes bytes valid text for PostgreSQL.
func clean(b []byte) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD"))
}

func (p *process) keep(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if line == "" {
		return
	}
	if p.lines = append(p.lines, line); len(p.lines) > keptLines {
		p.lines = p.lines[1:]
	}
}

// words are the last lines of its standard error.
func (p *process) words() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// ending tells how a process ended.
func ending(s *os.ProcessState, err error) (how string, ok bool) {
	if s == nil {
		return err.Error(), false
	}
	if status, known := s.Sys().(syscall.WaitStatus); known && status.Signaled() {
		return "signal " + strconv.Itoa(int(status.Signal())) + " (" + status.Signal().String() + ")", false
	}
	return "exit code " + strconv.Itoa(s.ExitCode()), s.ExitCode() == 0
}

// signal sends a signal to the process and its children.
func (p *process) signal(s syscall.Signal) {
	if err := syscall.Kill(-p.cmd.Process.Pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		_ = p.cmd.Process.Signal(s) // it may not be the leader of its group yet
	}
}

// stop asks the process to end, and ends it with its children after the grace.
func (p *process) stop(grace time.Duration) {
	p.signal(syscall.SIGTERM)
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-p.done:
	case <-late.C:
		p.signal(syscall.SIGKILL)
		<-p.done
	}
}
