package reprocess_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// report is a reader with a snapshot that stays open until the returned function is called.
func (w *world) report() (end func()) {
	w.t.Helper()
	return w.snapshot(w.connect())
}

func (w *world) connect() *pgx.Conn {
	w.t.Helper()
	config, err := pgx.ParseConfig(w.dsn)
	if err != nil {
		w.t.Fatal(err)
	}
	config.RuntimeParams["application_name"] = "report"
	conn, err := pgx.ConnectConfig(w.t.Context(), config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(w.t.Context())) })
	return conn
}

func (w *world) snapshot(conn *pgx.Conn) (end func()) {
	w.t.Helper()
	tx, err := conn.BeginTx(w.t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Exec(w.t.Context(), `SELECT 1 FROM pg_class LIMIT 1`); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		w.t.Helper()
		if err := tx.Rollback(w.t.Context()); err != nil {
			w.t.Error(err)
		}
	}
}

// retireUnderNewerSnapshots retires a version while a reader has a snapshot that holds the flip. One that was taken while a
// transaction older than the flip ran, be it of another test, looks older than it is: then another reader comes.
func (w *world) retireUnderNewerSnapshots(number job.Number) {
	w.t.Helper()
	w.await("its retirement", func() bool {
		end := w.report()
		defer end()
		return w.ask(number, ledger.Retire, ledger.Args{Now: true}).Code == job.ExitOK
	})
}

// unseeing makes the world work as a role that may not see when the transactions of others began.
func (w *world) unseeing() {
	w.t.Helper()
	role := "agent_of_" + w.text(`SELECT current_database()`)
	w.sql(`CREATE ROLE ` + role + ` LOGIN PASSWORD 'x'; GRANT ALL ON SCHEMA public, kappactl TO ` + role + `;
		GRANT ALL ON ALL TABLES IN SCHEMA kappactl TO ` + role)
	admin := w.pool
	w.t.Cleanup(func() {
		ctx := context.WithoutCancel(w.t.Context())
		if _, err := admin.Exec(ctx, `DROP OWNED BY `+role+` CASCADE; DROP ROLE `+role); err != nil {
			w.t.Error(err)
		}
	})
	pool, err := pg.Open(w.t.Context(), pg.Config{DSN: pgtest.As(w.dsn, role, "x"), Application: "kappactl agent"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	w.pool, w.store = pool, reprocess.NewStore(pool)
}

func TestReadersThatAreNotWaitedForAreCountedAndNamed(t *testing.T) {
	w := impatient(t, 100)
	w.finish(w.stage("bbb").Deployment, "verified", job.ExitOK)
	end, another := w.report(), w.report()
	a := w.ask(2, ledger.Promote, ledger.Args{IgnoreSnapshots: true})
	if a.Code != job.ExitOK || w.live() != "v2" {
		t.Fatalf("%+v", a)
	}
	has(t, a.Text(), "v2 is live", "warning: did not wait for 2 readers with a snapshot older than the flip", "application report", "pid ")
	has(t, w.text(`SELECT detail ->> 'ignored_readers' FROM kappactl.event WHERE kind = 'promoted' ORDER BY id DESC LIMIT 1`), `"application": "report"`)
	if back := w.ask(1, ledger.Rollback, ledger.Args{}); back.Code != job.ExitTimeout || w.live() != "v2" {
		t.Fatalf("a rollback is under the same guard: %+v", back)
	}
	another()
	back := w.ask(1, ledger.Rollback, ledger.Args{IgnoreSnapshots: true})
	if back.Code != job.ExitOK {
		t.Fatalf("%+v", back)
	}
	has(t, back.Text(), "warning: did not wait for 1 reader")
	end()
	quiet := w.ask(2, ledger.Promote, ledger.Args{IgnoreSnapshots: true})
	if quiet.Code != job.ExitOK || strings.Contains(quiet.Text(), "warning") {
		t.Errorf("nobody is in the way: %+v", quiet)
	}
}

func TestTheGuardHoldsForARoleThatMayNotSeeWhenTransactionsBegan(t *testing.T) {
	w := newWorld(t, 100)
	w.config.PromoteDeadline = 600 * time.Millisecond
	w.unseeing()
	firstLiveFor(t, w)
	w.finish(w.stage("bbb").Deployment, "verified", job.ExitOK)
	end := w.report()
	a := w.ask(2, ledger.Promote, ledger.Args{})
	if a.Code != job.ExitTimeout || w.live() != "v1" {
		t.Fatalf("%+v", a)
	}
	has(t, a.Text(), "application report", "without pg_read_all_stats", "wait needlessly")
	w.must(2, ledger.Promote, ledger.Args{IgnoreSnapshots: true})
	a = w.ask(1, ledger.Retire, ledger.Args{Now: true})
	if a.Code != job.ExitConflict || w.version(1).Phase != job.Standby {
		t.Fatalf("retire under a snapshot that is older than the flip: %+v", a)
	}
	has(t, a.Text(), "older than the flip", "without pg_read_all_stats", "application report")
	end()
	w.retireUnderNewerSnapshots(1)
}

func TestRetireWaitsForSnapshotsThatAreOlderThanTheFlipOnly(t *testing.T) {
	w := firstLive(t, 100)
	end := w.report()
	s := w.stage("bbb")
	w.finish(s.Deployment, "verified", job.ExitOK)
	w.must(2, ledger.Promote, ledger.Args{IgnoreSnapshots: true})
	a := w.ask(1, ledger.Retire, ledger.Args{Now: true})
	if a.Code != job.ExitConflict || w.version(1).Phase != job.Standby {
		t.Fatalf("%+v", a)
	}
	has(t, a.Text(), "readers have a snapshot open that is older than the flip", "application report", "in a transaction for")
	end()
	w.retireUnderNewerSnapshots(1)
}
