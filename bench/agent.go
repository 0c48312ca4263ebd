package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// agent is a running `kappactl serve`.
type agent struct {
	cmd  *exec.Cmd
	http string
	log  *logbook
	done chan error
}

// logbook keeps what the agent says and finds its address in it. The agent's output goroutine writes it, so it is
// guarded by found and read only after the process has ended.
type logbook struct {
	text  bytes.Buffer
	found chan string
	told  bool
}

var httpPattern = regexp.MustCompile(`http=(127\.0\.0\.1:\d+)`)

func (l *logbook) Write(p []byte) (int, error) {
	n, err := l.text.Write(p)
	if m := httpPattern.FindSubmatch(l.text.Bytes()); m != nil && !l.told {
		l.told = true
		l.found <- string(m[1])
	}
	return n, err
}

// serve starts an agent with the program's own settings and waits until it works.
func (b *bench) serve(ctx context.Context, dsn string) (*agent, error) {
	args := []string{"serve", "--http", "127.0.0.1:0"}
	if b.profile != "" {
		args = append(args, "--pprof")
	}
	a := &agent{
		cmd: exec.CommandContext(ctx, b.binary, args...), log: &logbook{found: make(chan string, 1)},
		done: make(chan error, 1),
	}
	a.cmd.Env, a.cmd.Dir, a.cmd.Stderr = b.env(dsn), b.folder, a.log
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	a.cmd.Cancel = func() error { return a.cmd.Process.Signal(syscall.SIGTERM) }
	if err := a.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { a.done <- a.cmd.Wait() }()
	select {
	case a.http = <-a.log.found:
		return a, nil
	case err := <-a.done:
		return nil, fmt.Errorf("the agent ended: %w\n%s", err, a.log.text.String())
	case <-time.After(2 * time.Minute):
		_ = a.cmd.Process.Kill()
		return nil, errors.New("the agent was not ready within 2 minutes")
	}
}

// hosted is an empty database with agents.
type hosted struct {
	dsn    string
	agents []*agent
	drop   func()
}

// host makes an empty database and starts n agents on it.
func (b *bench) host(ctx context.Context, n int) (*hosted, error) {
	dsn, drop, err := b.database(ctx)
	if err != nil {
		return nil, err
	}
	h := &hosted{dsn: dsn, drop: drop}
	for range n {
		a, err := b.serve(ctx, dsn)
		if err != nil {
			h.end(&err)
			return nil, err
		}
		h.agents = append(h.agents, a)
	}
	return h, nil
}

// end stops the agents, adds what they failed with to err, and drops the database.
func (h *hosted) end(err *error) {
	for _, a := range h.agents {
		*err = errors.Join(*err, a.stop())
	}
	h.drop()
}

// stop ends the agent and waits for it.
func (a *agent) stop() error {
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-a.done:
		return err
	case <-time.After(40 * time.Second):
		_ = a.cmd.Process.Kill()
		return errors.New("the agent did not end within 40 s of SIGTERM")
	}
}

// profiled writes a CPU profile of the agent, over seconds, into the profile folder; wait waits for it.
func (b *bench) profiled(ctx context.Context, a *agent, name string, seconds int) (wait func()) {
	if b.profile == "" {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := b.saveProfile(ctx, a, name, seconds); err != nil {
			b.say("profile: %v", err)
		}
	}()
	return func() { <-done }
}

func (b *bench) saveProfile(ctx context.Context, a *agent, name string, seconds int) error {
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", a.http, seconds)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	if err := os.MkdirAll(b.profile, 0o750); err != nil {
		return err
	}
	path := filepath.Join(b.profile, name+".pprof")
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, resp.Body)
	return errors.Join(err, file.Close())
}
