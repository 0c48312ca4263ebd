package reprocess_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/serving"
)

func has(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in: %s", w, text)
		}
	}
}

func withChecks(checks ...job.Check) func(*reprocess.Staging) {
	return func(s *reprocess.Staging) { s.Spec.Checks = checks }
}

func auto(s *reprocess.Staging) { s.Promote = job.PromoteAuto }

func firstLive(t *testing.T, ends ...int64) *world {
	t.Helper()
	return firstLiveFor(t, newWorld(t, ends...))
}

// impatient gives up flips early.
func impatient(t *testing.T, ends ...int64) *world {
	t.Helper()
	w := newWorld(t, ends...)
	w.config.PromoteDeadline = 600 * time.Millisecond
	return firstLiveFor(t, w)
}

func firstLiveFor(t *testing.T, w *world) *world {
	t.Helper()
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "live", job.ExitOK)
	return w
}

func TestAShorterHistoryIsRefusedAndItsTokenAcceptsExactlyIt(t *testing.T) {
	w := firstLive(t, 100, 50)
	w.brokers.set(func(b *brokers) { b.starts[0] = 40 })
	s := w.stage("bbb")
	d := w.finish(s.Deployment, "live", job.ExitGap)
	has(t, d.Message, "events/0: v1 begins at offset 0, v2 at 40 (40 offsets later)", "serve.keep", "archive")
	_, token, ok := strings.Cut(d.Next, "--accept-shorter-history=")
	if !ok || len(token) != 12 {
		t.Fatalf("next: %s", d.Next)
	}
	w.await("cleaning", func() bool { return w.version(2).EndedAt != nil })
	if v := w.version(2); v.Phase != job.Failed || *v.ExitCode != int(job.ExitGap) {
		t.Errorf("%+v", v)
	}
	w.brokers.set(func(b *brokers) { b.starts[0] = 41 })
	other := w.stage("bbb", func(s *reprocess.Staging) { s.AcceptShorterHistory = token })
	w.finish(other.Deployment, "live", job.ExitGap)
	w.brokers.set(func(b *brokers) { b.starts[0] = 40 })
	accepted := w.stage("bbb", func(s *reprocess.Staging) { s.AcceptShorterHistory, s.Promote = token, job.PromoteAuto })
	w.finish(accepted.Deployment, "live", job.ExitOK)
	if got := w.shown(); got != 110 {
		t.Errorf("the view shows %d, want 110", got)
	}
}

func TestKeptTimeCountsAsCoverage(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	keep := func(s *reprocess.Staging) { s.Spec.Serve.Keep = 24 * time.Hour }
	w.finish(w.stage("aaa", keep).Deployment, "live", job.ExitOK)
	w.brokers.set(func(b *brokers) { b.starts[0] = 40; b.at = func(int) int64 { return 60 } })
	w.finish(w.stage("bbb", keep).Deployment, "verified", job.ExitOK)
}

func TestARecreatedTopicIsAGap(t *testing.T) {
	w := firstLive(t, 100)
	w.finish(w.stage("bbb").Deployment, "", job.ExitOK)
	w.brokers.set(func(b *brokers) { b.id, b.ends[0] = 2, 500 })
	w.await("unhealthy", func() bool { return w.version(2).Verdict == job.Unhealthy && w.version(1).StaleSince != nil })
	has(t, w.version(2).Reason, "topic recreated", "events/0")
	if a := w.ask(2, reprocess.Promote, reprocess.Args{}); a.Code != job.ExitGap && a.Code != job.ExitNotCaughtUp {
		t.Errorf("promote: %+v", a)
	}
	third := w.stage("ccc")
	d := w.finish(third.Deployment, "live", job.ExitGap)
	has(t, d.Message, "deleted and made again")
}

func TestAGapStopsTheDeployWithItsPlaceAndLeavesLiveAlone(t *testing.T) {
	w := firstLive(t, 100)
	w.setIdle(2, true)
	s := w.stage("bbb")
	w.await("replay", func() bool { return w.version(2).Phase == job.Replaying })
	w.sql(`UPDATE kappactl.position SET fault = 'gap', fault_from = 3, fault_to = 10 WHERE number = 2`)
	d := w.finish(s.Deployment, "", job.ExitGap)
	has(t, d.Message, "gap events/0 [3,10)")
	has(t, d.Next, "kappactl resume counts v2 --accept-gap events/0:3-10")
	if w.live() != "v1" || w.shown() != 100 {
		t.Errorf("live %s shows %d", w.live(), w.shown())
	}
	// Accepted by hand: the deployment goes on.
	w.sql(`UPDATE kappactl.position SET fault = '' WHERE number = 2`)
	w.await("healthy", func() bool { return w.deployment(s.Deployment).ExitCode == nil })
	w.setIdle(2, false)
	w.finish(s.Deployment, "verified", job.ExitOK)
}

func TestAQueryErrorFailsTheVersionNamingSegmentAndCause(t *testing.T) {
	w := firstLive(t, 100)
	w.setIdle(2, true)
	s := w.stage("bbb")
	w.await("replay", func() bool { return w.version(2).Phase == job.Replaying })
	w.sql(`UPDATE kappactl.segment SET state = 'failed', fault = 'query', error = 'segment 7: division by zero', fault_from = 40, fault_to = 41 WHERE number = 2`)
	d := w.finish(s.Deployment, "verified", job.ExitUnhealthy)
	has(t, d.Message, "events/0 [40,41)", "division by zero")
	w.await("cleaning", func() bool { v := w.version(2); return v.Phase == job.Failed && v.EndedAt != nil })
	if again := w.stage("bbb"); again.Number != 3 {
		t.Errorf("deploying again makes a new staging: %+v", again)
	}
}

func TestAPartitionAddedInAReplayAndAfterItIsReadFromItsFirstOffset(t *testing.T) {
	w := newWorld(t, 100, 50)
	w.run(1, nil)
	w.setIdle(1, true)
	s := w.stage("aaa")
	w.await("replay", func() bool { return w.version(1).Phase == job.Replaying })
	w.brokers.grow(10)
	w.await("third partition", func() bool { return len(w.version(1).Partitions) == 3 })
	w.setIdle(1, false)
	w.finish(s.Deployment, "live", job.ExitOK)
	w.exact()
	w.brokers.grow(7)
	w.exact()
	if n := len(w.version(1).Partitions); n != 4 {
		t.Errorf("%d partitions", n)
	}
}

func TestAReplayGoesOnWhenMuchHasArrived(t *testing.T) {
	w := newWorld(t, 100)
	w.config.ExtendOver = 10
	w.setIdle(1, true)
	w.run(1, nil)
	s := w.stage("aaa")
	w.await("replay", func() bool { return w.version(1).Phase == job.Replaying })
	w.brokers.produce(0, 500)
	w.setIdle(1, false)
	w.finish(s.Deployment, "live", job.ExitOK)
	var rounds, segments int
	if err := w.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM kappactl.event WHERE kind = 'extended'), (SELECT count(*) FROM kappactl.segment)`).Scan(&rounds, &segments); err != nil {
		t.Fatal(err)
	}
	if rounds != 1 || segments != 2 {
		t.Errorf("%d rounds, %d segments", rounds, segments)
	}
	w.exact()
}

func TestStartPointsThatTheLogNoLongerHoldsAreGaps(t *testing.T) {
	for name, change := range map[string]func(*job.Replay){
		"time":    func(r *job.Replay) { r.Start = "-30d" },
		"offsets": func(r *job.Replay) { r.Start, r.Offsets = "", map[string]int64{"events/0": 20} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 100)
			w.brokers.set(func(b *brokers) { b.starts[0] = 40; b.at = func(int) int64 { return 40 } })
			w.run(1, nil)
			d := w.finish(w.stage("aaa", func(s *reprocess.Staging) { change(&s.Spec.Replay) }).Deployment, "live", job.ExitGap)
			has(t, d.Message, "events/0", "40")
		})
	}
}

func TestARollupOverACompactedTopicIsRefused(t *testing.T) {
	w := newWorld(t, 100)
	w.brokers.set(func(b *brokers) { b.flags.Compacted = true })
	w.run(1, nil)
	d := w.finish(w.stage("aaa").Deployment, "live", job.ExitUsage)
	has(t, d.Message, "compacted")
}

func TestBrokersThatDoNotAnswerAreUnknownAndNeverReady(t *testing.T) {
	w := impatient(t, 100, 50)
	w.finish(w.stage("bbb").Deployment, "verified", job.ExitOK)
	w.brokers.set(func(b *brokers) { b.parts[1] = errors.New("no leader") })
	w.await("unknown", func() bool { return w.version(2).Verdict == job.Unknown })
	v := w.version(2)
	if v.LagRecords != nil || v.Partitions[0].LagRecords == nil || v.Partitions[1].LagRecords != nil {
		t.Errorf("the other partition is known, the sum is not: %+v", v)
	}
	has(t, v.Reason, "no leader")
	a := w.ask(2, reprocess.Promote, reprocess.Args{})
	if a.Code != job.ExitNotCaughtUp || w.live() != "v1" {
		t.Errorf("promote: %+v", a)
	}
	w.brokers.set(func(b *brokers) { b.parts[1] = nil })
	w.await("known again", func() bool { return w.version(2).Verdict == job.Ready })
	w.must(2, reprocess.Promote, reprocess.Args{})
}

func TestAnOpenTransactionIsNotCaughtUp(t *testing.T) {
	w := newWorld(t, 103)
	w.brokers.set(func(b *brokers) { b.stable[0] = 2 })
	w.run(1, nil)
	s := w.stage("aaa", func(s *reprocess.Staging) { s.Spec.Ready.MaxLagTime = 50 * time.Millisecond })
	w.await("lagging", func() bool { return w.version(1).Verdict == job.Lagging })
	p := w.version(1).Partitions[0]
	if *p.LagRecords != 101 || *p.HeldRecords != 101 || *p.Position != 2 {
		t.Errorf("%+v", p)
	}
	has(t, p.Reason, "101 held behind an open transaction")
	w.brokers.set(func(b *brokers) { b.stable[0] = -1 })
	w.finish(s.Deployment, "live", job.ExitOK)
	w.exact()
}

func TestChecksGateTheFlip(t *testing.T) {
	w := firstLive(t, 100)
	s := w.stage("bbb", auto, withChecks(
		job.Check{Name: "passes", SQL: `SELECT (SELECT n FROM candidate) = (SELECT n FROM live)`},
		job.Check{Name: "fails", SQL: `SELECT n > 1000 FROM candidate`, When: "both"},
		job.Check{Name: "errs", SQL: `SELECT no_such_column FROM candidate`},
		job.Check{Name: "is slow", SQL: `SELECT pg_sleep(5) IS NOT NULL`, Timeout: 20 * time.Millisecond},
		job.Check{Name: "writes", SQL: `DELETE FROM counts__v1 RETURNING true`},
		job.Check{Name: "two rows", SQL: `SELECT true FROM generate_series(1, 2)`},
		job.Check{Name: "equal", Diff: &job.DiffLimit{}},
	))
	d := w.finish(s.Deployment, "live", job.ExitChecks)
	has(t, d.Message, `check "fails": fail: it returned false`, `check "errs": no answer:`, `check "is slow": no answer: no answer within 20ms`,
		`check "writes": no answer:`, "read-only", `check "two rows": no answer: it returned 2 rows`)
	for _, good := range []string{"passes", "equal"} {
		if strings.Contains(d.Message, `"`+good+`"`) {
			t.Errorf("check %q passed: %s", good, d.Message)
		}
	}
	if w.live() != "v1" || d.State != job.Waiting || d.Phase != job.CaughtUp {
		t.Errorf("live %s, %+v", w.live(), d)
	}
	if a := w.ask(2, reprocess.Promote, reprocess.Args{}); a.Code != job.ExitChecks {
		t.Errorf("promote runs them again: %+v", a)
	}
	// The corrected file has the same hash: deploy goes on where it stood.
	again := w.stage("bbb", auto, withChecks(job.Check{Name: "passes", SQL: `SELECT true`}))
	if !again.Resumed {
		t.Fatalf("%+v", again)
	}
	w.finish(s.Deployment, "live", job.ExitOK)
}

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
	a := w.ask(2, reprocess.Promote, reprocess.Args{})
	if a.Code != job.ExitTimeout || w.live() != "v1" {
		t.Fatalf("%+v", a)
	}
	has(t, a.Text, "snapshot", "application report", "pid ")
	w.must(2, reprocess.Promote, reprocess.Args{IgnoreSnapshots: true})
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
	id, err := w.store.Ask(t.Context(), reprocess.Request{Job: "counts", Number: 2, Verb: reprocess.Promote})
	if err != nil {
		t.Fatal(err)
	}
	var worst time.Duration
	var a *reprocess.Answer
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
	has(t, a.Text, "lock on view public.counts", "pid ", "in a transaction for")
	if worst > time.Second {
		t.Errorf("a reader waited %s", worst)
	}
	var waiting int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted`).Scan(&waiting); err != nil || waiting != 0 {
		t.Errorf("%d locks are waited for (%v)", waiting, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.must(2, reprocess.Promote, reprocess.Args{})
	w.exact()
}

func TestRollbackToAVersionThatStoppedReadingNeedsStale(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	quick := func(s *reprocess.Staging) { s.Spec.Ready.MaxLagTime, s.Promote = 50*time.Millisecond, job.PromoteAuto }
	w.finish(w.stage("aaa", quick).Deployment, "live", job.ExitOK)
	w.finish(w.stage("bbb", quick).Deployment, "live", job.ExitOK)
	w.setIdle(1, true)
	w.brokers.produce(0, 1000)
	w.await("lagging", func() bool { return w.version(1).Verdict == job.Lagging })
	a := w.ask(1, reprocess.Rollback, reprocess.Args{})
	if a.Code != job.ExitNotCaughtUp || w.live() != "v2" {
		t.Fatalf("%+v", a)
	}
	has(t, a.Text, "lagging", "1000 records")
	has(t, a.Next, "--stale")
	w.setIdle(1, false)
	w.await("ready", func() bool { return w.version(1).Verdict == job.Ready })
	w.must(1, reprocess.Rollback, reprocess.Args{})
	w.exact()
	w.sql(`UPDATE kappactl.position SET fault = 'gap', fault_from = 1, fault_to = 2 WHERE number = 2`)
	w.await("stale", func() bool { return w.version(2).StaleSince != nil })
	again := w.stage("bbb", func(s *reprocess.Staging) { s.Again = true })
	if d := w.finish(again.Deployment, "live", job.ExitUnhealthy); d.State != job.DeployFailed {
		t.Errorf("a stale standby does not flip: %+v", d)
	}
}

func TestRollbackWithStaleGoesBackToAVersionBehind(t *testing.T) {
	w := firstLive(t, 100)
	w.finish(w.stage("bbb", auto).Deployment, "live", job.ExitOK)
	w.setIdle(1, true)
	w.brokers.produce(0, 10)
	w.exact()
	w.must(1, reprocess.Rollback, reprocess.Args{Stale: true})
	if w.live() != "v1" || w.shown() != 100 {
		t.Errorf("live %s shows %d", w.live(), w.shown())
	}
}

func TestALiveVersionThatIsDownNeedsTheFlag(t *testing.T) {
	w := firstLive(t, 100)
	w.finish(w.stage("bbb").Deployment, "verified", job.ExitOK)
	w.sql(`UPDATE kappactl.position SET fault = 'gap', fault_from = 1, fault_to = 2 WHERE number = 1`)
	w.await("stale", func() bool { return w.version(1).StaleSince != nil })
	a := w.ask(2, reprocess.Promote, reprocess.Args{})
	if a.Code != job.ExitUnhealthy {
		t.Fatalf("%+v", a)
	}
	has(t, a.Next, "--live-is-down")
	w.must(2, reprocess.Promote, reprocess.Args{LiveIsDown: true})
	w.exact()
}

func TestAFailingCheckAfterTheFlipRollsBackByItself(t *testing.T) {
	w := firstLive(t, 100)
	s := w.stage("bbb", auto, withChecks(job.Check{Name: "small", SQL: `SELECT n < 150 FROM live`, When: "after", Every: 20 * time.Millisecond}))
	w.finish(s.Deployment, "live", job.ExitOK)
	w.brokers.produce(0, 100)
	d := w.finish(s.Deployment, "settled", job.ExitRolledBack)
	has(t, d.Message, `check "small" failed twice in a row`)
	if w.live() != "v1" {
		t.Errorf("live is %s", w.live())
	}
	w.exact()
	if _, err := w.tryStage("bbb"); err == nil {
		t.Error("a hash that was rolled back needs --again")
	}
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
	a := w.ask(1, reprocess.Retire, reprocess.Args{Now: true})
	if a.Code != job.ExitConflict {
		t.Fatalf("%+v", a)
	}
	has(t, a.Text, "report")
	if a := w.ask(2, reprocess.Retire, reprocess.Args{Now: true}); a.Code != job.ExitConflict {
		t.Errorf("retire of live: %+v", a)
	}
	w.sql(`DROP VIEW public.report`)
	w.must(1, reprocess.Retire, reprocess.Args{Now: true})
}

func TestAChangeBesideTheHashWritesTheLiveViewAnew(t *testing.T) {
	w := firstLive(t, 100)
	s := w.stage("aaa", func(s *reprocess.Staging) { s.Layout.Where = `n > 1000` })
	if s.Nothing || s.Number != 1 {
		t.Fatalf("%+v", s)
	}
	w.finish(s.Deployment, "", job.ExitOK)
	if got := w.shown(); got != 0 {
		t.Errorf("serve.where is not applied: %d", got)
	}
	if s := w.stage("aaa", func(s *reprocess.Staging) { s.Layout.Where = `n > 1000` }); !s.Nothing {
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
	has(t, d.Message, "2000 of 100000 records could not be processed (2%, on_error allows 1%)")
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
	id, err := w.store.Ask(t.Context(), reprocess.Request{Job: "counts", Number: 1, Verb: reprocess.Retire, Args: reprocess.Args{Now: true}})
	if err != nil {
		t.Fatal(err)
	}
	w.await("the reason", func() bool { return strings.Contains(w.version(1).Reason, "not dropped yet") })
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := w.answer(id); a.Code != job.ExitOK {
		t.Errorf("%+v", a)
	}
}
