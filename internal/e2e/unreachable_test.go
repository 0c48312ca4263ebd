package e2e_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// closedPort is an address on which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// says checks that a command ended with the code and one clear error without the password.
func says(t *testing.T, o outcome, code int, want string) {
	t.Helper()
	var causes int
	for line := range strings.Lines(o.stderr) {
		if strings.HasPrefix(line, "error: ") {
			causes++
		}
	}
	if o.code != code || causes != 1 || !strings.Contains(o.stderr, want) || strings.Contains(o.stdout+o.stderr, "hunter2") {
		t.Errorf("kappactl %s: exit %d, want %d and one error with %q and no password\nstdout: %s\nstderr: %s",
			strings.Join(o.args, " "), o.code, code, want, o.stdout, o.stderr)
	}
	if o.stdout != "" {
		t.Errorf("kappactl %s: stdout is not empty: %s", strings.Join(o.args, " "), o.stdout)
	}
}

func TestWithoutAnAgentNothingIsWrittenAndTheCommandEndsAtOnce(t *testing.T) {
	t.Parallel()
	w, topic := verified(t, kafkatest.Fake(t))
	rows := func() (n int) {
		if err := w.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM kappactl.version) + (SELECT count(*) FROM kappactl.request)
			+ (SELECT count(*) FROM kappactl.event)`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := rows()
	job := w.file("v3.yaml", fmt.Sprintf(clicksJob, topic, 50))
	toldOf(t, w.run("deploy", job), unusable, "no agent is alive")
	for _, args := range [][]string{{"deploy", job}, {"promote", "clicks"}, {"abort", "clicks", "v2"}} {
		begin := time.Now()
		says(t, w.run(args...), 11, "no agent")
		t.Logf("%s took %s", args[0], time.Since(begin).Round(time.Millisecond)) // measured, not asserted: the machine is shared
	}
	if o := w.code(0, "status", "clicks"); !strings.Contains(o.stderr, "warning: no agent is alive") || !strings.Contains(o.stderr, "next: kappactl serve") {
		t.Errorf("status does not say that nobody works: %s", o.stderr)
	}
	if after := rows(); after != before {
		t.Errorf("%d rows were written", after-before)
	}
}

func TestWhatCannotBeReachedIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kafkatest.Fake(t))
	job := w.file("clicks.yaml", fmt.Sprintf(clicksJob, "clicks", 0))
	nowhere := closedPort(t)
	// at runs a command with a connection string that holds a password: never by flag.
	at := func(dsn string, args ...string) outcome {
		there := *w
		there.vars = []string{"KAPPACTL_DSN=" + dsn}
		return there.run(args...)
	}

	t.Run("no database", func(t *testing.T) {
		says(t, at("postgres://kappa:hunter2@"+nowhere+"/x", "status"), 11, "connection refused")
		toldOf(t, at("postgres://kappa:hunter2@"+nowhere+"/x", "status"), unusable, "nothing listens where PostgreSQL should be")
		says(t, at("postgres://kappa:hunter2@"+nowhere+"/x", "deploy", job), 11, "connection refused")
	})
	t.Run("wrong password", func(t *testing.T) {
		w.role("secretive", "right")
		says(t, at(pgtest.As(w.dsn, w.name("secretive"), "hunter2"), "status"), 11, "secretive")
	})
	t.Run("no control schema", func(t *testing.T) {
		says(t, w.run("status", "--dsn", pgtest.Empty(t)), 11, "kappactl init")
	})
	t.Run("missing rights", func(t *testing.T) {
		w.role("stranger", "hunter2")
		says(t, at(pgtest.As(w.dsn, w.name("stranger"), "hunter2"), "status"), 11, "permission denied")
		says(t, at(pgtest.As(pgtest.Empty(t), w.name("stranger"), "hunter2"), "init"), 11, "permission denied")
	})
	t.Run("no broker", func(t *testing.T) {
		w.serve()
		says(t, w.run("deploy", job, "--brokers", nowhere), 11, "connection refused")
		toldOf(t, w.run("deploy", job, "--brokers", nowhere), unusable, "nothing listens where the brokers should be")
	})
	t.Run("missing topic", func(t *testing.T) {
		toldOf(t, w.run("deploy", w.file("clicks2.yaml", fmt.Sprintf(clicksJob, "not-there", 0))), unusable, "the topic does not exist")
		says(t, w.run("deploy", w.file("clicks2.yaml", fmt.Sprintf(clicksJob, "not-there", 0))), 2, `topic "not-there" does not exist`)
	})
}

// name is a role's name of this test alone: roles belong to the whole server.
func (w *world) name(role string) string {
	return fmt.Sprintf("%s_%s", role, strings.TrimPrefix(filepath.Base(strings.Split(w.dsn, "?")[0]), "t_"))
}

// role makes a login role that may connect and nothing more.
func (w *world) role(role, password string) {
	w.t.Helper()
	name := pg.Ident(w.name(role))
	if _, err := w.pool.Exec(w.t.Context(), "CREATE ROLE "+name+" LOGIN PASSWORD '"+password+"'"); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if _, err := w.pool.Exec(context.WithoutCancel(w.t.Context()), "DROP ROLE "+name); err != nil {
			w.t.Error(err)
		}
	})
}
