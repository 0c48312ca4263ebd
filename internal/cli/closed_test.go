package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/kappactl/kappactl/internal/pg"
)

// bare is the environment of a program that knows the database and nothing of a person.
func bare(t *testing.T, dsn string, more ...string) []string {
	t.Helper()
	return append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "KAPPACTL_DSN=" + dsn, "TERM=xterm"}, more...)
}

// longer are the time limits of a command that waits until it gives up, tried in turn: a loaded machine may need more than a second
// for what comes before the wait.
var longer = []string{"1s", "10s", "60s"}

// exitCode is how a program ended.
func exitCode(t *testing.T, cmd *exec.Cmd, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// TestWithoutATerminalAndWithoutInput (C01): no controlling terminal, the input closed, the output a file, or all three closed. Watch
// prints lines, and what looks once works.
func TestWithoutATerminalAndWithoutInput(t *testing.T) {
	t.Parallel()
	_, dsn := staged(t)
	self := program(t)
	for _, c := range []struct {
		args, redirect string
		code           int
		says           string // in the file
	}{
		{"watch pageviews --timeout 1s", "<&- >out 2>&1", 4, "pageviews v1 staged"},
		{"watch --timeout 1s", "<&- >out 2>/dev/null", 4, "pageviews v1 staged"},
		{"watch pageviews --timeout 1s", "<&- >&- 2>&-", 4, ""},
		{"status pageviews", "<&- >out 2>&1", 0, "pageviews\tv1\tstaged"},
		{"status pageviews", "<&- >&- 2>&-", 0, ""},
		{"retire pageviews v1", "<&- >out 2>&1", 2, "off a terminal it needs --yes"},
	} {
		t.Run(c.args+" "+c.redirect, func(t *testing.T) {
			t.Parallel()
			var code int
			var text []byte
			for _, limit := range longer {
				cmd := exec.Command("sh", "-c", "exec "+self+" "+strings.Replace(c.args, "1s", limit, 1)+" "+c.redirect)
				cmd.Dir, cmd.Env = t.TempDir(), bare(t, dsn)
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no controlling terminal
				code = exitCode(t, cmd, cmd.Run())
				var err error
				if text, err = os.ReadFile(filepath.Join(cmd.Dir, "out")); err != nil && c.says != "" {
					t.Fatal(err)
				}
				if strings.Contains(string(text), c.says) {
					break
				}
			}
			if code != c.code || !strings.Contains(string(text), c.says) || bytes.ContainsAny(text, "\x1b") || bytes.Contains(text, []byte("goroutine ")) {
				t.Errorf("exit %d\n%s", code, text)
			}
		})
	}
}

// TestWatchIntoAPipeOnATerminal (C01): only the output is no terminal.
func TestWatchIntoAPipeOnATerminal(t *testing.T) {
	t.Parallel()
	_, dsn := staged(t)
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	var shown bytes.Buffer
	var read sync.WaitGroup
	read.Go(func() { _, _ = io.Copy(&shown, master) }) // ends with an error when the terminal has no other side any more
	cmd := exec.Command(program(t), "watch", "pageviews", "--timeout", "6s")
	cmd.Env = bare(t, dsn)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, &out, tty
	code := exitCode(t, cmd, cmd.Run())
	tty.Close()
	read.Wait()
	if code != 4 || !strings.Contains(out.String(), "pageviews v1 staged") || strings.Contains(out.String()+shown.String(), "\x1b") || !strings.Contains(shown.String(), "timed out") {
		t.Errorf("exit %d\nstdout: %q\nterminal: %q", code, out.String(), shown.String())
	}
}

// TestInterruptingAWaitChangesNothing (C05): Ctrl-C and SIGTERM end it at once, with 130 and how to come back.
func TestInterruptingAWaitChangesNothing(t *testing.T) {
	t.Parallel()
	pool, dsn := staged(t)
	before := stateOfAll(t, pool)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		ctx, cancel := context.WithTimeout(t.Context(), testPatience)
		defer cancel()
		cmd := exec.CommandContext(ctx, program(t), "wait", "pageviews", "v1", "--for", "live")
		errs, out := newLines(), &bytes.Buffer{}
		cmd.Env, cmd.Stdout, cmd.Stderr = bare(t, dsn), out, errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		errs.await(t, "pageviews v1 staged")
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		code := exitCode(t, cmd, cmd.Wait())
		if want := "error: interrupted\nnext: kappactl wait pageviews v1 --for live   # the deployment goes on\n"; code != 130 || out.Len() > 0 || !strings.HasSuffix(errs.String(), want) {
			t.Errorf("%s: exit %d\nstdout: %s\nstderr: %s", s, code, out, errs)
		}
	}
	if after := stateOfAll(t, pool); after != before {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
}

// stateOfAll is what commands could have changed.
func stateOfAll(t *testing.T, pool *pg.Pool) (text string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT concat_ws(' ', (SELECT string_agg(v::text, ' ') FROM kappactl.version v),
		(SELECT string_agg(d::text, ' ') FROM kappactl.deployment d), (SELECT count(*) FROM kappactl.request), (SELECT count(*) FROM kappactl.event))`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

// TestAWaitThatCannotEndEndsByItsTimeout (C05): not before it, with its code, the reason and how to come back.
func TestAWaitThatCannotEndEndsByItsTimeout(t *testing.T) {
	t.Parallel()
	_, dsn := staged(t)
	began := time.Now()
	code, out, errs := runCLI(t, "wait", "pageviews", "--for", "live", "--timeout", "1s", "--dsn", dsn)
	if code != 4 || out != "" || time.Since(began) < time.Second || !strings.HasSuffix(errs, "error: timed out\nnext: kappactl wait pageviews v1 --for live   # the deployment goes on\n") {
		t.Errorf("exit %d after %s\nstdout: %s\nstderr: %s", code, time.Since(began), out, errs)
	}
}
