package e2e_test

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/reprocess"
)

// stoppedAt are the steps in which PostgreSQL stops: the agent is frozen there, so that it is the very step.
var stoppedAt = []struct{ when, point string }{
	{"in mid replay, records of a segment are decoded", faultpoint.SegmentReading},
	{"at the commit of a segment", faultpoint.SegmentBeforeCommit},
	{"the table is filled, its index is not made", reprocess.FaultDeployFilled},
	{"at the commit that switches the view", reprocess.FaultPromoteFlipping},
	{"at a commit while following", faultpoint.LiveBeforeCommit},
	{"right after a commit while following", faultpoint.LiveAfterCommit},
}

// TestPostgreSQLStoppedAtOnce stops the server with -m immediate at steps of a version's life and starts it again. One agent
// lives through it; the command that waits does too.
func TestPostgreSQLStoppedAtOnce(t *testing.T) {
	t.Parallel()
	server := pgtest.StartOwn(t)
	w := newWorld(t, kafkatest.Fake(t))
	w.on(server.DSN)
	topic := kafkatest.Name("clicks")
	kafkatest.Topic(t, w.brokers, topic, 4, nil)
	total := 0
	for i, s := range stoppedAt {
		produceClicks(t, w.brokers, topic, total, 2000)
		total += 2000
		a := w.serve("KAPPACTL_FAULT=" + s.point + ":1:stop")
		result := make(chan outcome, 1)
		go func() {
			if s.point == faultpoint.LiveBeforeCommit || s.point == faultpoint.LiveAfterCommit {
				result <- outcome{}
				return
			}
			result <- w.run("deploy", w.file("clicks.yaml", fmt.Sprintf(clicksJob, topic, i)), "--promote", "auto", "--wait-agent", "3m")
		}()
		kafkatest.Until(t, "the agent stands still "+s.when, a.stopped)
		var waited <-chan outcome // C05
		if i < 4 {                // the versions that are deployed here
			waited = w.following("wait", "clicks", fmt.Sprintf("v%d", i+1), "--for", "live")
		}
		server.Crash(t)
		if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if o := w.run("status", "clicks"); o.code != 11 {
			t.Errorf("status without a database: exit %d\n%s", o.code, o.stderr)
		}
		server.Start(t)
		if o := <-result; o.code != 0 {
			t.Fatalf("deploy, PostgreSQL stopped %s: exit %d\n%s%s", s.when, o.code, o.stdout, o.stderr)
		}
		if waited != nil {
			if o := <-waited; o.code != 0 {
				t.Errorf("wait, PostgreSQL stopped %s: exit %d\n%s%s", s.when, o.code, o.stdout, o.stderr)
			}
		}
		kafkatest.Until(t, "everything is counted", func() bool {
			var live int
			err := w.pool.QueryRow(t.Context(), fmt.Sprintf("SELECT count(*) FROM kappactl.version WHERE phase = 'live' AND number >= %d", min(i+1, 4))).Scan(&live)
			if err != nil && !pg.Unreachable(err) { // a connection of before the stop is found out when it is used
				t.Fatal(err)
			}
			return err == nil && live == 1
		})
		w.caughtUp("clicks")
		w.equalAfter(pgStopped, s.when, "clicks")
		a.stop()
	}
}

// following starts a command that waits and returns when it has begun to: once it has said how far the version is.
func (w *world) following(args ...string) <-chan outcome {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), w.bin, args...)
	stdout, stderr := &transcript{}, &transcript{}
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = w.env(), w.dir, stdout, stderr
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	result := make(chan outcome, 1)
	go func() {
		_ = cmd.Wait() // its exit code says it
		result <- outcome{args: args, code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	}()
	kafkatest.Until(w.t, "the command says how far it is", func() bool { return stderr.String() != "" })
	return result
}

// on makes dsn the database of all commands and of the test's own questions.
func (w *world) on(dsn string) {
	w.t.Helper()
	pool, err := pg.Open(w.t.Context(), pg.Config{DSN: dsn})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	w.dsn, w.pool = dsn, pool
}
