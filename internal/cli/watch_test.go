package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// staged is a database in which pageviews v1 is staged, and an agent that does nothing is alive.
func staged(t *testing.T) (pool *pg.Pool, dsn string) {
	t.Helper()
	pool, dsn = pgtest.New(t)
	c, err := (&app{}).compile(t.Context(), jobFile{path: filepath.Join("..", "..", "examples", "pageviews.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = reprocess.NewStore(pool).Stage(t.Context(), plan.Staging{
		Spec: c.spec, Layout: c.query.Layout, Hash: c.hash, Dialect: query.Dialect, Engine: query.Engine(), By: "ana@laptop", Serving: views(),
	})
	if err != nil {
		t.Fatal(err)
	}
	change(t, pool, `INSERT INTO kappactl.agent (id, host, pid, release, capacity, dialects, heartbeat_at)
		VALUES ('idle', 'idle', 1, 'idle', 1, '{1}', clock_timestamp() + interval '1 hour')`)
	return pool, dsn
}

func change(t *testing.T, pool *pg.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// endDeployment writes what an abort writes.
func endDeployment(t *testing.T, pool *pg.Pool) {
	t.Helper()
	change(t, pool, `UPDATE kappactl.version SET phase = 'aborted', error = '{"code": "refused", "args": {"cause": "aborted by ana"}}', ended_at = clock_timestamp()`)
	change(t, pool, `UPDATE kappactl.deployment SET state = 'aborted', message = '{"code": "refused", "args": {"cause": "aborted by ana"}}', ended_at = clock_timestamp()`)
}

func TestWatchActsAndEndsWithTheDeployment(t *testing.T) {
	t.Parallel()
	pool, dsn := staged(t)
	w := onTerminal(t, 100, 30, []string{"KAPPACTL_DSN=" + dsn}, "watch", "pageviews")
	modes := w.modes()
	w.shows("kappactl", "pageviews", "v1 candidate", "staged", "an agent to write down the ranges", "1 agent")
	w.press("?")
	w.shows("this help", "roll back")
	w.press("x")
	w.press("e")
	w.shows("deploy", "ana@laptop", "staged as")
	w.press("\x1b")
	w.shows("v1 candidate")

	w.press("a")
	w.shows("abort pageviews v1", "kappactl abort pageviews v1", "type pageviews to confirm")
	w.press("pageviews\r")
	w.shows("asked")
	request := oneRequest(t, pool)
	if request != "abort 1" {
		t.Errorf("request %q", request)
	}
	endDeployment(t, pool)
	change(t, pool, `UPDATE kappactl.request SET answered_at = clock_timestamp(), exit_code = 0, answer = '{"code": "refused", "args": {"cause": "pageviews/v1 is gone"}}'`)
	w.shows("pageviews/v1 is gone")
	w.press("\r")
	w.ends(1, modes)
	w.shows("pageviews v1 is aborted: its deployment is aborted (exit code 1)", "cause", "aborted by ana", "records", "checks", "next")
}

func TestWatchInAProtectedContextAsksForItsName(t *testing.T) {
	t.Parallel()
	pool, dsn := staged(t)
	change(t, pool, `UPDATE kappactl.version SET phase = 'verified'`)
	settings := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(settings, []byte("contexts: {prod: {protected: true}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := onTerminal(t, 160, 30, []string{"KAPPACTL_DSN=" + dsn, "KAPPACTL_CONFIG=" + settings, "KAPPACTL_CONTEXT=prod"}, "watch", "pageviews")
	modes := w.modes()
	w.shows("v1 candidate", "context prod, database ", "protected")
	w.press("p")
	w.shows("promote pageviews v1", "type pageviews to confirm")
	w.press("pageviews\r")
	w.shows("the context is protected: type prod to confirm")
	w.press("pageviews\r")
	w.shows("that is not the context's name")
	w.press("\x15prod\r")
	w.shows("asked")
	if request := oneRequest(t, pool); request != "promote 1" {
		t.Errorf("request %q", request)
	}
	w.press("\x1b")
	w.shows("v1 candidate")
	w.press("q")
	w.ends(0, modes)
}

// oneRequest waits for the request to be written.
func oneRequest(t *testing.T, pool *pg.Pool) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		var text string
		err := pool.QueryRow(ctx, `SELECT verb || ' ' || number FROM kappactl.request`).Scan(&text)
		if err == nil {
			return text
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			t.Fatal(err)
		}
		<-again.C
	}
}

func TestWatchSurvivesEverySize(t *testing.T) {
	t.Parallel()
	pool, dsn := staged(t)
	w := onTerminal(t, 0, 0, []string{"KAPPACTL_DSN=" + dsn}, "watch", "pageviews", "--readonly")
	modes := w.modes()
	sizes := [][2]uint16{{1, 1}, {20, 5}, {300, 100}, {0, 0}, {2, 1}}
	for i := range uint16(30) {
		sizes = append(sizes, [2]uint16{73 + i%3, 24})
	}
	for _, s := range append(sizes, [2]uint16{80, 24}) {
		w.resize(s[0], s[1])
	}
	w.shows("v1 candidate", "WAITS FOR", "q quit")
	if strings.Contains(w.screen(), "promote") {
		t.Error("acts in a read-only window")
	}
	endDeployment(t, pool)
	w.ends(1, modes)
}

func TestWatchRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	_, dsn := staged(t)
	for _, c := range []struct {
		name string
		env  string
		args []string
		do   func(*terminal)
		code int
		left string
	}{
		{"q", "LC_ALL=C", []string{"watch", "pageviews"}, func(w *terminal) { w.press("q") }, 0, "pageviews v1 is staged: its deployment is rolling out and goes on"},
		{"ctrl-c", "NO_COLOR=1", []string{"watch", "pageviews"}, func(w *terminal) { w.press("\x03") }, 130, "kappactl watch pageviews"},
		{"SIGTERM", "A=B", []string{"watch"}, func(w *terminal) {
			if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}, 130, "interrupted"},
		{"SIGHUP", "A=B", []string{"watch"}, func(w *terminal) {
			if err := w.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Error(err)
			}
		}, 130, "interrupted"},
		{"SIGQUIT", "A=B", []string{"watch"}, func(w *terminal) {
			if err := w.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
				t.Error(err)
			}
		}, 130, "interrupted"},
		{"SIGTRAP", "A=B", []string{"watch"}, func(w *terminal) {
			if err := w.cmd.Process.Signal(syscall.SIGTRAP); err != nil {
				t.Error(err)
			}
		}, 130, "interrupted"},
		{"timeout", "A=B", []string{"watch", "--timeout", "6s"}, func(*terminal) {}, 4, "timed out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := onTerminal(t, 90, 24, []string{"KAPPACTL_DSN=" + dsn, c.env}, c.args...)
			modes := w.modes()
			w.shows("pageviews", "staged")
			c.do(w)
			w.ends(c.code, modes)
			w.shows(c.left)
			if c.name == "q" && strings.ContainsAny(w.screen(), "◆─█") {
				t.Errorf("the C locale gets\n%s", w.screen())
			}
		})
	}
}

func TestWatchWithoutColourSendsNone(t *testing.T) {
	t.Parallel()
	_, dsn := staged(t)
	for _, c := range []struct {
		env    string
		colour bool
	}{{"NO_COLOR=1", false}, {"COLORTERM=truecolor", true}} {
		w := onTerminal(t, 90, 24, []string{"KAPPACTL_DSN=" + dsn, c.env}, "watch")
		modes := w.modes()
		w.shows("pageviews")
		w.press("q")
		w.ends(0, modes)
		w.mu.Lock()
		if got := strings.Contains(w.wrote.String(), "[38;"); got != c.colour {
			t.Errorf("%s: colour %t, want %t", c.env, got, c.colour)
		}
		w.mu.Unlock()
	}
}

func TestWatchShowsTheAgeOfItsDataAndReconnects(t *testing.T) {
	t.Parallel()
	pool, dsn := staged(t)
	p := startProxy(t, dsn)
	w := onTerminal(t, 100, 24, []string{"KAPPACTL_DSN=" + p.dsn}, "watch", "pageviews")
	modes := w.modes()
	w.shows("v1 candidate", "1 agent")
	p.cut()
	w.shows("reconnecting", "v1 candidate", "staged")
	p.mend()
	w.await("no age", func(screen string) bool {
		return !strings.Contains(screen, "reconnecting") && strings.Contains(screen, "1 agent")
	})
	p.cut()
	w.shows("reconnecting")
	p.mend()
	endDeployment(t, pool)
	w.ends(1, modes)
}

func TestWatchWithoutATerminalPrintsLines(t *testing.T) {
	t.Parallel()
	pool, dsn := staged(t)
	run := func(env string, args ...string) (out, errs string, code int) {
		cmd := exec.Command(program(t), args...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "KAPPACTL_DSN=" + dsn, "TERM=xterm", env}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no controlling terminal
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	}
	for _, args := range [][]string{{"watch"}, {"watch", "pageviews"}} {
		var out, errs string
		var code int
		for _, limit := range longer {
			if out, errs, code = run("A=B", append(args, "--timeout", limit)...); out != "" {
				break
			}
		}
		if code != 4 || !strings.Contains(out, "pageviews v1 staged") || strings.ContainsRune(out+errs, 0x1b) || !strings.Contains(errs, "timed out") {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, errs)
		}
	}
	out, errs, code := run("A=B", "watch", "nope")
	if code == 0 || out != "" || !strings.HasPrefix(errs, "error: ") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	endDeployment(t, pool)
	out, errs, code = run("NO_COLOR=1", "watch", "pageviews")
	if code != 1 || strings.Count(out, "\n") != 5 || errs != "" {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

func TestWatchOnADumbTerminalPrintsLines(t *testing.T) {
	t.Parallel()
	pool, dsn := staged(t)
	w := onTerminal(t, 120, 24, []string{"KAPPACTL_DSN=" + dsn, "TERM=dumb"}, "watch", "pageviews")
	modes := w.modes()
	w.shows("pageviews v1 staged")
	endDeployment(t, pool)
	w.ends(1, modes)
	w.shows("pageviews v1 aborted: aborted by ana", "(exit code 1)")
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.ContainsRune(w.wrote.String(), 0x1b) {
		t.Errorf("control codes in %q", w.wrote.String())
	}
}

func TestNoOtherCommandAsksTheTerminalAnything(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"watch", "--help"}} {
		w := onTerminal(t, 80, 24, nil, args...)
		w.ends(0, w.modes())
		w.mu.Lock()
		if strings.ContainsRune(w.wrote.String(), 0x1b) {
			t.Errorf("%v wrote %q", args, w.wrote.String())
		}
		w.mu.Unlock()
	}
}

// proxy stands between the program and the database and can be cut. Guarded by mu.
type proxy struct {
	t       *testing.T
	dsn     string
	target  string
	address string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
}

func startProxy(t *testing.T, dsn string) *proxy {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, target: u.Host, address: "127.0.0.1:0"}
	p.mend()
	u.Host = p.address
	p.dsn = u.String()
	t.Cleanup(p.cut)
	return p
}

func (p *proxy) mend() {
	p.t.Helper()
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener, p.address = l, l.Addr().String()
	go p.serve(l)
}

func (p *proxy) serve(l net.Listener) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := net.DialTimeout("tcp", p.target, 5*time.Second)
		if err != nil {
			in.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, in, out)
		p.mu.Unlock()
		go func() { _, _ = io.Copy(out, in); out.Close() }() // ends when either side is cut
		go func() { _, _ = io.Copy(in, out); in.Close() }()
	}
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener.Close()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}
