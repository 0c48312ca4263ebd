package reprocess_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/serving"
)

func TestAReaderWithAnOlderSnapshotIsWaitedForAndNamed(t *testing.T) {
	w := impatient(t, 100)
	w.finish(w.stage("bbb").Deployment, "verified", job.ExitOK)
	config, err := pgx.ParseConfig(w.dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["application_name"] = "report"
	reader, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close(t.Context())
	tx, err := reader.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT 1 FROM pg_class LIMIT 1`); err != nil {
		t.Fatal(err)
	}
	a := w.ask(2, ledger.Promote, ledger.Args{})
	if a.Code != job.ExitTimeout || w.live() != "v1" {
		t.Fatalf("%+v", a)
	}
	has(t, a.Text(), "snapshot", "application report", "pid ")
	w.must(2, ledger.Promote, ledger.Args{IgnoreSnapshots: true})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAFlipNeverQueuesBeforeReadersForLong(t *testing.T) {
	w := impatient(t, 100)
	w.finish(w.stage("bbb").Deployment, "verified", job.ExitOK)
	idle, err := pgx.Connect(t.Context(), w.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close(t.Context())
	// READ COMMITTED holds no snapshot while idle, but the lock of its read on the view.
	tx, err := idle.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT * FROM public.counts`); err != nil {
		t.Fatal(err)
	}
	id, err := w.store.Ask(t.Context(), ledger.Request{Job: "counts", Number: 2, Verb: ledger.Promote})
	if err != nil {
		t.Fatal(err)
	}
	var worst time.Duration
	var a *ledger.Answer
	for a == nil {
		began := time.Now()
		w.shown()
		worst = max(worst, time.Since(began))
		if a, err = w.store.Answer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if a.Code != job.ExitTimeout || w.live() != "v1" {
		t.Fatalf("%+v", a)
	}
	has(t, a.Text(), "lock on view public.counts", "pid ", "in a transaction for")
	if worst > 20*time.Second {
		t.Errorf("a reader waited %s", worst)
	}
	var waiting int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks
		WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&waiting); err != nil || waiting != 0 {
		t.Errorf("%d locks are waited for (%v)", waiting, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.must(2, ledger.Promote, ledger.Args{})
	w.exact()
}

func TestRollbackToAVersionThatStoppedReadingNeedsStale(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	quick := func(s *plan.Staging) { s.Spec.Ready.MaxLagTime, s.Promote = 50*time.Millisecond, job.PromoteAuto }
	w.finish(w.stage("aaa", quick).Deployment, "live", job.ExitOK)
	w.finish(w.stage("bbb", quick).Deployment, "live", job.ExitOK)
	w.setIdle(1, true)
	w.brokers.produce(0, 1000)
	w.await("lagging", func() bool { return w.version(1).Verdict == job.Lagging })
	a := w.ask(1, ledger.Rollback, ledger.Args{})
	if a.Code != job.ExitNotCaughtUp || w.live() != "v2" {
		t.Fatalf("%+v", a)
	}
	has(t, a.Text(), "lagging", "it is 1,000 records, ", " behind; going back to it loses newer results")
	has(t, a.Next, "--stale")
	w.setIdle(1, false)
	w.await("ready", func() bool { return w.version(1).Verdict == job.Ready })
	w.must(1, ledger.Rollback, ledger.Args{})
	w.exact()
	w.sql(`UPDATE kappactl.position SET fault = 'gap', fault_from = 1, fault_to = 2 WHERE number = 2`)
	w.await("stale", func() bool { return w.version(2).StaleSince != nil })
	again := w.stage("bbb", func(s *plan.Staging) { s.Again = true })
	if again.FlipOnly || again.Number != 3 {
		t.Errorf("a standby that stopped reading is not replayed: %+v", again)
	}
}

func TestRollbackWithStaleGoesBackToAVersionBehind(t *testing.T) {
	w := firstLive(t, 100)
	w.finish(w.stage("bbb", auto).Deployment, "live", job.ExitOK)
	w.setIdle(1, true)
	w.brokers.produce(0, 10)
	w.exact()
	w.await("the lag", func() bool { v := w.version(1); return v.LagRecords != nil && *v.LagRecords == 10 })
	a := w.ask(1, ledger.Rollback, ledger.Args{Stale: true})
	if a.Code != job.ExitOK || w.live() != "v1" || w.shown() != 100 {
		t.Errorf("live %s shows %d: %+v", w.live(), w.shown(), a)
	}
	has(t, a.Text(), "warning: counts/v1 was not up to date: 10 records, ", "readers miss newer results")
	w.setIdle(1, false)
	w.exact()
	// A standby that follows is flipped to under the barrier, whatever the flag says.
	w.await("v2 following", func() bool { v := w.version(2); return v.LagRecords != nil && *v.LagRecords == 0 })
	if a := w.ask(2, ledger.Rollback, ledger.Args{Stale: true}); a.Code != job.ExitOK || strings.Contains(a.Text(), "warning") {
		t.Errorf("%+v", a)
	}
	w.exact()
}

func TestALiveVersionThatIsDownNeedsTheFlag(t *testing.T) {
	w := firstLive(t, 100)
	w.finish(w.stage("bbb").Deployment, "verified", job.ExitOK)
	w.firstIsDown()
	w.promoteOverFirst()
}

// firstIsDown stops v1, which is live, at a gap, and waits until that is known.
func (w *world) firstIsDown() {
	w.t.Helper()
	w.sql(`UPDATE kappactl.position SET fault = 'gap', fault_from = 1, fault_to = 2 WHERE number = 1`)
	w.await("stale", func() bool { return w.version(1).StaleSince != nil })
}

// promoteOverFirst promotes v2 while v1 is down: without the flag that is refused.
func (w *world) promoteOverFirst() {
	w.t.Helper()
	a := w.ask(2, ledger.Promote, ledger.Args{})
	if a.Code != job.ExitUnhealthy {
		w.t.Fatalf("%+v", a)
	}
	has(w.t, a.Next, "--live-is-down")
	w.must(2, ledger.Promote, ledger.Args{LiveIsDown: true})
	w.exact()
}

func TestAViewThatIsTakenIsRefusedBeforeTheReplay(t *testing.T) {
	w := newWorld(t, 10)
	w.sql(`CREATE TABLE public.counts (a int)`)
	_, err := w.tryStage("aaa")
	var r *job.Refusal
	if !errors.As(err, &r) || r.Code != job.ExitConflict {
		t.Errorf("%v", err)
	}
}

func TestRetireRefusesWhatOthersDependOn(t *testing.T) {
	w := firstLive(t, 100)
	w.finish(w.stage("bbb", auto).Deployment, "live", job.ExitOK)
	w.sql(`CREATE VIEW public.report AS SELECT n FROM public.counts__v1`)
	a := w.ask(1, ledger.Retire, ledger.Args{Now: true})
	if a.Code != job.ExitConflict {
		t.Fatalf("%+v", a)
	}
	has(t, a.Text(), "view report")
	if got := w.text(`SELECT relname::text FROM pg_class WHERE relname IN ('counts__v1', 'report') ORDER BY 1`); got != "counts__v1\nreport" || w.version(1).Phase != job.Standby {
		t.Errorf("a refused retire leaves everything: %s, %+v", got, w.version(1))
	}
	if a := w.ask(2, ledger.Retire, ledger.Args{Now: true}); a.Code != job.ExitConflict {
		t.Errorf("retire of live: %+v", a)
	}
	w.sql(`DROP VIEW public.report`)
	w.must(1, ledger.Retire, ledger.Args{Now: true})
}

func TestAChangeBesideTheHashWritesTheLiveViewAnew(t *testing.T) {
	w := firstLive(t, 100)
	s := w.stage("aaa", func(s *plan.Staging) { s.Layout.Where = `n > 1000` })
	if s.Nothing || s.Number != 1 {
		t.Fatalf("%+v", s)
	}
	w.finish(s.Deployment, "", job.ExitOK)
	if got := w.shown(); got != 0 {
		t.Errorf("serve.where is not applied: %d", got)
	}
	if s := w.stage("aaa", func(s *plan.Staging) { s.Layout.Where = `n > 1000` }); !s.Nothing {
		t.Errorf("%+v", s)
	}
}

func TestTooManyDeadLettersAreUnhealthy(t *testing.T) {
	w := firstLive(t, 100000)
	w.setIdle(2, true)
	s := w.stage("bbb")
	w.await("replay", func() bool { return w.version(2).Phase == job.Replaying })
	w.sql(`UPDATE kappactl.segment SET state = 'done', rows = 0, records = 100000, dead_letters = 2000 WHERE number = 2`)
	d := w.finish(s.Deployment, "", job.ExitUnhealthy)
	has(t, d.Message, "2,000 of 100,000 records could not be processed (2%, on_error allows 1%)")
	a := w.ask(2, ledger.Resume, ledger.Args{})
	if a.Code != job.ExitUnhealthy {
		t.Errorf("resume of a version that no retry makes healthy: %+v", a)
	}
	has(t, a.Text(), "has no fault to retry, but it is unhealthy: 2,000 of 100,000 records could not be processed")
}

func TestADeletedTopicIsUnknownAndTheOthersAreStillShown(t *testing.T) {
	w := firstLive(t, 100, 50)
	w.brokers.set(func(b *brokers) { b.missing, b.err = 1, errors.New("topic events/1 does not exist") })
	w.await("unknown", func() bool { return w.version(1).Partitions[1].Verdict == job.Unknown })
	v := w.version(1)
	if v.LagRecords != nil || v.Partitions[0].LagRecords == nil || v.Partitions[1].LagRecords != nil {
		t.Errorf("%+v", v)
	}
	has(t, v.Partitions[1].Reason, "does not exist")
}

func TestATableThatCannotBeDroppedYetIsSaidAndDroppedLater(t *testing.T) {
	w := newWorld(t, 100)
	w.views = serving.New(serving.Config{DropLockTimeout: 30 * time.Millisecond})
	firstLiveFor(t, w)
	w.finish(w.stage("bbb", auto).Deployment, "live", job.ExitOK)
	conn, err := pgx.Connect(t.Context(), w.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT * FROM public.counts__v1`); err != nil {
		t.Fatal(err)
	}
	id, err := w.store.Ask(t.Context(), ledger.Request{Job: "counts", Number: 1, Verb: ledger.Retire, Args: ledger.Args{Now: true}})
	if err != nil {
		t.Fatal(err)
	}
	w.await("the reason", func() bool { return w.version(1).ReasonCode == reason.CodeNotDropped })
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := w.answer(id); a.Code != job.ExitOK {
		t.Errorf("%+v", a)
	}
}
