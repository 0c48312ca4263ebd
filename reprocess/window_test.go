package reprocess_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/status"
)

// overdue ends the rollback windows that are open.
func (w *world) overdue() {
	w.t.Helper()
	w.sql(`UPDATE kappactl.deployment SET observe_until = clock_timestamp() WHERE state = 'observing'`)
	w.sql(`UPDATE kappactl.version SET standby_until = clock_timestamp() WHERE phase = 'standby'`)
}

// passed waits until the controller of a version has gone over it twice more.
func (w *world) passed(number int) {
	w.t.Helper()
	for range 2 {
		var mark time.Time
		if err := w.pool.QueryRow(w.t.Context(), `SELECT clock_timestamp()`).Scan(&mark); err != nil {
			w.t.Fatal(err)
		}
		w.await("a pass", func() bool { return w.version(number).Partitions[0].SampledAt.After(mark) })
	}
}

func TestAPinnedStandbyOutlivesItsWindowUntilItIsUnpinned(t *testing.T) {
	w := firstLive(t, 100)
	s := w.stage("bbb", auto)
	w.finish(s.Deployment, "live", job.ExitOK)
	first := job.Ref{Job: "counts", Number: 1}
	if _, err := w.store.Pin(t.Context(), first, true, "ann"); err != nil {
		t.Fatal(err)
	}
	w.overdue()
	w.finish(s.Deployment, "settled", job.ExitOK)
	w.passed(1)
	if v := w.version(1); v.Phase != job.Standby || !v.Pinned {
		t.Fatalf("%+v", v)
	}
	if a := w.ask(1, ledger.Retire, ledger.Args{Now: true}); a.Code != job.ExitConflict || a.Next != "kappactl unpin counts v1" {
		t.Errorf("retire of a pinned version: %+v", a)
	}
	w.brokers.produce(0, 10) // it keeps reading, so that readers may go back to it
	w.must(1, ledger.Rollback, ledger.Args{})
	w.exact()
	w.must(2, ledger.Promote, ledger.Args{})
	w.overdue()
	if _, err := w.store.Pin(t.Context(), first, false, "ann"); err != nil {
		t.Fatal(err)
	}
	w.await("its retirement", func() bool { return w.version(1).Phase == job.Retired })
}

func TestWithoutAutoRetireAStandbyStaysUntilAPersonRetiresIt(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	stays := func(in *plan.Staging) { in.Spec.AutoRetire = false }
	w.finish(w.stage("aaa", stays).Deployment, "live", job.ExitOK)
	s := w.stage("bbb", stays, auto)
	w.finish(s.Deployment, "live", job.ExitOK)
	if a := w.ask(1, ledger.Retire, ledger.Args{}); a.Code != job.ExitConflict || !strings.Contains(a.Next, "--now") {
		t.Errorf("the only target of a rollback: %+v", a)
	}
	w.overdue()
	w.finish(s.Deployment, "settled", job.ExitOK)
	w.passed(1)
	if v := w.version(1); v.Phase != job.Standby {
		t.Fatalf("%+v", v)
	}
	w.must(1, ledger.Retire, ledger.Args{})
}

func TestAPromoteSettlesTheRollOutBeforeItAndSaysSoBefore(t *testing.T) {
	w := firstLive(t, 100)
	second := w.stage("bbb", auto)
	w.finish(second.Deployment, "live", job.ExitOK)
	third := w.stage("ccc")
	w.finish(third.Deployment, "verified", job.ExitOK)
	if d := w.deployment(second.Deployment); d.State != job.Observing {
		t.Fatalf("a deploy that is staged leaves the window open: %+v", d)
	}
	before := func(number job.Number) string {
		notes, err := w.store.BeforePromote(t.Context(), w.views, job.Ref{Job: "counts", Number: number})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(notes, "\n")
	}
	has(t, before(3), "settles the roll-out of v2", "open until 20", "a rollback then goes to v2 and no longer to v1")
	w.must(3, ledger.Promote, ledger.Args{})
	if d := w.deployment(second.Deployment); d.State != job.Settled || w.live() != "v3" {
		t.Errorf("%+v", d)
	}
	if got := w.text(`SELECT kind || ' v' || number FROM kappactl.event WHERE kind = 'settled' ORDER BY id DESC LIMIT 1`); got != "settled v2" {
		t.Errorf("history says %q", got)
	}
	if ref, err := w.store.Resolve(t.Context(), "counts", ledger.Rollback); err != nil || ref.Number != 2 {
		t.Errorf("rollback goes to %v, %v", ref, err)
	}
	if v := w.version(1); v.Phase != job.Standby || v.StandbyUntil == nil {
		t.Errorf("v1 keeps its own window: %+v", v)
	}
	w.overdue()
	w.finish(third.Deployment, "settled", job.ExitOK)
	wider := w.stage("ddd", func(in *plan.Staging) {
		in.AllowColumnChange = true
		in.Layout.View = append(in.Layout.View, job.ViewColumn{Name: "twice", Type: "bigint", Finish: `2 * s."n"`})
	})
	has(t, before(wider.Number), `"twice"`, "SELECT * on it fail once")
	if got := before(3); got != "" {
		t.Errorf("nothing is to be said of a version that is live: %q", got)
	}
}

func TestAStandbysHashFlipsWithoutAReplay(t *testing.T) {
	w := firstLive(t, 100)
	w.finish(w.stage("bbb", auto).Deployment, "live", job.ExitOK)
	w.sql(`UPDATE kappactl.version SET pinned_at = clock_timestamp() WHERE number = 1`)
	w.overdue()
	back := w.stage("aaa", auto)
	if !back.FlipOnly || back.Number != 1 {
		t.Fatalf("%+v", back)
	}
	if d := w.finish(back.Deployment, "live", job.ExitOK); d.State != job.Observing || w.live() != "v1" {
		t.Errorf("%+v", d)
	}
	if got := w.text(`SELECT count(*)::text FROM kappactl.version`); got != "2" {
		t.Errorf("%s versions: something was staged anew", got)
	}
	w.exact()
}

func TestStatusWarnsOfOldTransactionsAndDeadRowsAndTheFlipComesAfterAnalyze(t *testing.T) {
	w := firstLive(t, 100)
	w.finish(w.stage("bbb").Deployment, "verified", job.ExitOK)
	if got := w.text(`SELECT (reltuples >= 0)::text FROM pg_class WHERE relname = 'counts__v2'`); got != "true" {
		t.Error("the table of a verified version was never analyzed")
	}
	if st, err := w.store.Status(t.Context(), "counts"); err != nil || len(st.Warnings) != 0 {
		t.Errorf("nothing is wrong: %v %v", st.Warnings, err)
	}
	strict := status.New(w.pool, status.Config{OldTransaction: time.Millisecond, DeadRows: 300})
	end := w.report()
	w.sql(`ALTER TABLE public.counts__v2 SET (autovacuum_enabled = off)`)
	// A connection of its own: one that truncated the table to fill it may report that and these rows at once, and the
	// server then takes the dead rows for truncated ones.
	if _, err := w.connect().Exec(t.Context(), `DO $$ BEGIN FOR i IN 1..400 LOOP UPDATE public.counts__v2 SET n = n; END LOOP; END $$`); err != nil {
		t.Fatal(err)
	}
	warned := func() string {
		st, err := strict.Status(t.Context(), "counts")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(st.Warnings, "\n")
	}
	w.await("the warnings", func() bool { return strings.Contains(warned(), "counts__v2") })
	has(t, warned(), "application report, in a transaction for", "cannot be removed", "table public.counts__v2 has 400 dead rows and ", "VACUUM public.counts__v2")
	end()
	if _, err := w.pool.Exec(t.Context(), `VACUUM public.counts__v2`, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	w.await("no dead rows", func() bool { return !strings.Contains(warned(), "counts__v2") })
}
