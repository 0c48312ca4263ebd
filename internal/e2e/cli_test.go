package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// world is one installation: brokers, a database of its own, and the commands against them.
type world struct {
	t       *testing.T
	bin     string
	brokers []string
	dsn     string
	pool    *pg.Pool
	dir     string
	vars    []string // more of every command's environment, after what env sets
}

// newWorld makes a database with the control schema beside the given brokers.
func newWorld(t *testing.T, brokers []string) *world {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatalf("build kappactl: %v", err)
	}
	pool, dsn := pgtest.New(t)
	return &world{t: t, bin: bin, brokers: brokers, dsn: dsn, pool: pool, dir: t.TempDir()}
}

// env is the environment of every command: nothing of the caller's KAPPACTL_ or PG settings.
func (w *world) env(extra ...string) []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "KAPPACTL_") && !strings.HasPrefix(e, "PG") {
			env = append(env, e)
		}
	}
	env = append(env, "KAPPACTL_BROKERS="+strings.Join(w.brokers, ","), "KAPPACTL_DSN="+w.dsn, "HOME="+w.dir)
	return append(append(env, w.vars...), extra...)
}

// outcome is what a command did.
type outcome struct {
	args   []string
	code   int
	stdout string
	stderr string
}

// run runs a command to its end, at most five minutes.
func (w *world) run(args ...string) outcome {
	w.t.Helper()
	limit := 5 * time.Minute
	if soak {
		limit = 30 * time.Minute
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.bin, args...)
	cmd.Env, cmd.Dir = w.env(), w.dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("kappactl %s: %v", strings.Join(args, " "), err)
	}
	return outcome{args: args, code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// ok runs a command that has to succeed and returns its standard output.
func (w *world) ok(args ...string) string {
	w.t.Helper()
	return w.code(0, args...).stdout
}

// code runs a command that has to end with the exit code.
func (w *world) code(want int, args ...string) outcome {
	w.t.Helper()
	o := w.run(args...)
	if o.code != want {
		w.t.Fatalf("kappactl %s: exit %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), o.code, want, o.stdout, o.stderr)
	}
	return o
}

// into runs a command with --output json and decodes what it prints.
func (w *world) into(v any, args ...string) {
	w.t.Helper()
	w.decode(v, w.ok(append(args, "--output", "json")...))
}

func (w *world) decode(v any, text string) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		w.t.Fatalf("%v in %s", err, text)
	}
}

// until is kafkatest.Until for conditions that run commands: each is a process with connections of its own.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	kafkatest.UntilEvery(w.t, 200*time.Millisecond, what, ok)
}

// file writes a job file and returns its path.
func (w *world) file(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// agent is a running `kappactl serve`.
type agent struct {
	w    *world
	cmd  *exec.Cmd
	log  *transcript
	done chan struct{} // closed when the process has ended
}

// serve starts an agent and ends it with the test.
func (w *world) serve(extra ...string) *agent {
	w.t.Helper()
	cmd := exec.Command(w.bin, "serve", "--http", "127.0.0.1:0")
	cmd.Env, cmd.Dir = w.env(append([]string{"KAPPACTL_LEASE=1s"}, extra...)...), w.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	a := &agent{w: w, cmd: cmd, log: &transcript{}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = a.log, a.log
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(a.done)
	}()
	if len(extra) == 0 { // one with a fault may never live to send a heartbeat
		defer a.awaitHeartbeat()
	}
	w.t.Cleanup(func() {
		a.kill()
		if w.t.Failed() {
			w.t.Logf("agent %d said:\n%s", cmd.Process.Pid, tail(a.log.String(), 60))
		}
	})
	return a
}

// awaitHeartbeat waits until the database knows the agent.
func (a *agent) awaitHeartbeat() {
	a.w.t.Helper()
	kafkatest.Until(a.w.t, "the agent is alive", func() bool {
		var n int
		err := a.w.pool.QueryRow(a.w.t.Context(), `SELECT count(*) FROM kappactl.agent WHERE pid = $1`, a.cmd.Process.Pid).Scan(&n)
		if err != nil {
			a.w.t.Fatal(err)
		}
		return n > 0
	})
}

// kill ends the agent at once, as kill -9 does.
func (a *agent) kill() { a.signal(syscall.SIGKILL) }

// stop ends the agent as a service manager does.
func (a *agent) stop() { a.signal(syscall.SIGTERM) }

func (a *agent) signal(s syscall.Signal) {
	a.w.t.Helper()
	_ = a.cmd.Process.Signal(s)
	select {
	case <-a.done:
	case <-time.After(3 * time.Minute):
		a.w.t.Errorf("agent %d did not end within three minutes of %s", a.cmd.Process.Pid, s)
	}
}

// transcript is what a process has said so far.
type transcript struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write appends.
func (x *transcript) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.Write(b)
}

func (x *transcript) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.String()
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
