package reprocess_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// reader polls the view until stop and fails the test when a read fails, is empty, or a counter falls.
func (w *world) reader() (stop func()) {
	w.t.Helper()
	pool, err := pg.Open(w.t.Context(), pg.Config{DSN: w.dsn, Application: "reader"})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer pool.Close()
		last := int64(0)
		for every(ctx, time.Millisecond) {
			var n *int64
			err := pool.QueryRow(ctx, `SELECT sum(n)::bigint FROM public.counts`).Scan(&n)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				w.t.Errorf("reader: %v", err)
			case n == nil:
				w.t.Error("reader: empty")
			case *n < last:
				w.t.Errorf("reader: %d after %d", *n, last)
			default:
				last = *n
			}
		}
	}()
	return func() { cancel(); <-ended }
}

func TestAJobGoesFromDeployToRetireWhileReadersRead(t *testing.T) {
	w := newWorld(t, 1000, 2000)
	w.run(2, nil)
	first := w.stage("aaa")
	d := w.finish(first.Deployment, "", job.ExitOK)
	if d.State != job.Settled || w.live() != "v1" {
		t.Fatalf("first: %+v", d)
	}
	w.exact()
	defer w.reader()()

	second := w.stage("bbb")
	d = w.finish(second.Deployment, "", job.ExitOK)
	if d.State != job.Waiting || d.Phase != job.Verified || d.Next != "kappactl promote counts v2" {
		t.Fatalf("second waits: %+v", d)
	}
	w.brokers.produce(0, 50)
	w.must(2, ledger.Promote, ledger.Args{})
	w.exact()
	if d := w.finish(second.Deployment, "live", job.ExitOK); d.State != job.Observing || w.live() != "v2" || w.version(1).Phase != job.Standby {
		t.Fatalf("promoted: %+v", d)
	}
	w.brokers.produce(1, 50)
	ref, err := w.store.Resolve(t.Context(), "counts", ledger.Rollback)
	if err != nil || ref.Number != 1 {
		t.Fatalf("rollback goes to %v, %v", ref, err)
	}
	w.must(1, ledger.Rollback, ledger.Args{})
	w.exact()
	if w.live() != "v1" || w.deployment(second.Deployment).State != job.RolledBack || w.version(2).RolledBackAt == nil {
		t.Fatalf("rolled back: %+v", w.version(2))
	}
	again := w.stage("bbb", func(s *plan.Staging) { s.Again = true })
	if !again.FlipOnly || again.Number != 2 {
		t.Fatalf("again: %+v", again)
	}
	w.finish(again.Deployment, "live", job.ExitOK)
	w.exact()
	if a := w.ask(1, ledger.Retire, ledger.Args{}); a.Code != job.ExitConflict || !strings.Contains(a.Text(), "rollback window") {
		t.Fatalf("retire inside the window: %+v", a)
	}
	w.must(1, ledger.Retire, ledger.Args{Now: true})
	if v := w.version(1); v.Phase != job.Retired || v.EndedAt == nil {
		t.Fatalf("retired: %+v", v)
	}
	var tables int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_class WHERE relname LIKE 'counts\_\_v1%'`).Scan(&tables); err != nil || tables != 0 {
		t.Errorf("%d tables of v1 are left (%v)", tables, err)
	}
	if len(w.brokers.groups) != 1 || !strings.HasPrefix(w.brokers.groups[0], "kappactl.counts.v1.") {
		t.Errorf("groups deleted: %v", w.brokers.groups)
	}
	w.await("the end of the window: nothing is there to go back to", func() bool { return w.deployment(again.Deployment).State == job.Settled })
	if s := w.stage("bbb"); !s.Nothing {
		t.Errorf("deploy of the live hash: %+v", s)
	}
	w.exact()
}

func TestAStandbyThatAPersonNamesIsPromotedAgain(t *testing.T) {
	w := newWorld(t, 10)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
	second := w.stage("bbb", func(s *plan.Staging) { s.Promote = job.PromoteAuto })
	w.finish(second.Deployment, "", job.ExitOK)
	for range 2 {
		w.must(1, ledger.Rollback, ledger.Args{})
		w.must(2, ledger.Promote, ledger.Args{})
	}
	if d := w.deployment(second.Deployment); d.State != job.RolledBack {
		t.Errorf("the first roll-out stays rolled back: %+v", d)
	}
	id, err := w.store.NewestDeployment(t.Context(), job.Ref{Job: "counts", Number: 2})
	if err != nil {
		t.Fatal(err)
	}
	if d := w.deployment(id); d.State != job.Observing || w.live() != "v2" || w.version(2).RolledBackAt != nil {
		t.Errorf("live %s, %+v", w.live(), d)
	}
	w.exact()
}

func TestAnAutoDeploymentPromotesItself(t *testing.T) {
	w := newWorld(t, 10)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
	s := w.stage("bbb", func(s *plan.Staging) { s.Promote = job.PromoteAuto })
	if d := w.finish(s.Deployment, "", job.ExitOK); d.State != job.Observing || w.live() != "v2" {
		t.Errorf("%+v", d)
	}
	w.exact()
}

func TestTheStandbyIsRetiredWhenItsWindowEnds(t *testing.T) {
	w := newWorld(t, 10)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
	s := w.stage("bbb", func(s *plan.Staging) { s.Promote, s.Spec.KeepOld = job.PromoteAuto, 300*time.Millisecond })
	w.finish(s.Deployment, "settled", job.ExitOK)
	w.await("retirement of v1", func() bool { return w.version(1).Phase == job.Retired })
	w.exact()
}

func TestAnEmptyTopicIsCaughtUpAtOnce(t *testing.T) {
	w := newWorld(t, 0, 0)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "live", job.ExitOK)
	if v := w.version(1); *v.LagRecords != 0 || *v.LagSeconds != 0 {
		t.Errorf("%+v", v)
	}
}

func TestTwoPromotesAtOnceOneWins(t *testing.T) {
	w := newWorld(t, 10)
	w.run(2, nil)
	w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
	w.finish(w.stage("bbb").Deployment, "", job.ExitOK)
	w.finish(w.stage("ccc").Deployment, "", job.ExitOK)
	var ids []int64
	for _, n := range []job.Number{2, 3} {
		id, err := w.store.Ask(t.Context(), ledger.Request{Job: "counts", Number: n, Verb: ledger.Promote})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	codes := map[job.ExitCode]int{}
	for _, id := range ids {
		codes[w.answer(id).Code]++
	}
	if codes[job.ExitOK] != 1 || codes[job.ExitConflict] != 1 {
		t.Errorf("exit codes %v", codes)
	}
	w.exact()
}

func TestACandidateStagedBeforeAnotherFlipIsComparedAnewByDeploy(t *testing.T) {
	w := newWorld(t, 10)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
	w.finish(w.stage("bbb").Deployment, "", job.ExitOK)
	third := w.stage("ccc")
	w.finish(third.Deployment, "", job.ExitOK)
	w.must(2, ledger.Promote, ledger.Args{})
	if a := w.ask(3, ledger.Promote, ledger.Args{}); a.Code != job.ExitConflict || !strings.Contains(a.Text(), "v2 is live now") {
		t.Fatalf("%+v", a)
	}
	if s := w.stage("ccc"); !s.Resumed || s.Deployment != third.Deployment {
		t.Fatalf("%+v", s)
	}
	w.must(3, ledger.Promote, ledger.Args{})
	if w.live() != "v3" {
		t.Errorf("live is %s", w.live())
	}
}

func TestPromoteBeforeCaughtUpIsRefused(t *testing.T) {
	w := newWorld(t, 10)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
	w.setIdle(2, true)
	w.stage("bbb")
	w.await("replay", func() bool { return w.version(2).Phase == job.Replaying })
	if a := w.ask(2, ledger.Promote, ledger.Args{}); a.Code != job.ExitNotCaughtUp {
		t.Errorf("%+v", a)
	}
	w.must(2, ledger.Abort, ledger.Args{})
	if v := w.version(2); v.Phase != job.Aborted || v.EndedAt == nil {
		t.Errorf("%+v", v)
	}
	if a := w.ask(1, ledger.Abort, ledger.Args{}); a.Code != job.ExitConflict || a.Next != "kappactl rollback counts" {
		t.Errorf("abort of live: %+v", a)
	}
	if s := w.stage("bbb"); s.Number != 3 {
		t.Errorf("after an abort: %+v", s)
	}
}

func TestUntilStopsWhereAskedAndDeployGoesOn(t *testing.T) {
	w := newWorld(t, 10)
	w.run(1, nil)
	s := w.stage("aaa", func(s *plan.Staging) { s.Until = "staged" })
	if d := w.finish(s.Deployment, "", job.ExitOK); d.Phase != job.Staged || d.State != job.Waiting {
		t.Fatalf("%+v", d)
	}
	w.stage("aaa", func(s *plan.Staging) { s.Until = "caught_up" })
	if d := w.finish(s.Deployment, "", job.ExitOK); d.Phase != job.CaughtUp {
		t.Fatalf("%+v", d)
	}
	w.stage("aaa", func(s *plan.Staging) { s.Until = "verified" })
	if d := w.finish(s.Deployment, "", job.ExitOK); d.Phase != job.Verified || w.live() != "" {
		t.Fatalf("%+v", d)
	}
	w.stage("aaa")
	w.finish(s.Deployment, "live", job.ExitOK)
	w.exact()
}

func TestPausedVersionsStandStillUntilResumed(t *testing.T) {
	w := newWorld(t, 10)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
	w.finish(w.stage("bbb").Deployment, "", job.ExitOK)
	w.must(2, ledger.Pause, ledger.Args{})
	w.await("stalled", func() bool {
		v := w.version(2)
		return v.Paused && v.Verdict == job.Stalled && v.Phase == job.CatchingUp
	})
	if a := w.ask(1, ledger.Pause, ledger.Args{}); a.Code != job.ExitConflict {
		t.Errorf("pause of live: %+v", a)
	}
	w.must(2, ledger.Resume, ledger.Args{})
	w.await("verified", func() bool { return w.version(2).Phase == job.Verified })
	w.must(2, ledger.Promote, ledger.Args{})
	w.exact()
}
