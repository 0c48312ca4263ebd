package reprocess_test

import (
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// small fails once readers see 150 or more.
var small = job.Check{Name: "small", SQL: `SELECT n < 150 FROM live`, When: job.CheckAfter, Every: 20 * time.Millisecond}

func TestAFailingCheckAfterTheFlipRollsBackByItselfWhileReadersRead(t *testing.T) {
	w := firstLive(t, 100)
	defer w.reader()()
	s := w.stage("bbb", auto, withChecks(small))
	w.finish(s.Deployment, "live", job.ExitOK)
	w.await("a pass", func() bool { return w.check(2, "small").Outcome == "pass" })
	w.brokers.produce(0, 100)
	d := w.finish(s.Deployment, "settled", job.ExitRolledBack)
	has(t, d.Message, `rolled back to counts/v1: check "small" failed twice in a row: it returned false`)
	has(t, d.Next, "--again")
	if w.live() != "v1" || d.State != job.RolledBack {
		t.Errorf("live is %s, %+v", w.live(), d)
	}
	w.exact()
	if _, err := w.tryStage("bbb"); err == nil {
		t.Error("a hash that was rolled back needs --again")
	}
	events, err := w.store.History(t.Context(), "counts", new(job.Number(2)), 1)
	if err != nil || len(events) != 1 || events[0].Kind != "taken_back" {
		t.Errorf("the history of v2 ends with %+v (%v)", events, err)
	}
	if c := w.check(2, "small"); c.Failures != 2 || c.Stage != job.CheckAfter || c.Offsets["events/0"] != 200 {
		t.Errorf("%+v", c)
	}
}

func TestAfterTheFlipADiffCheckComparesWithThePreviousVersionAndNoAnswerOnlyAlarms(t *testing.T) {
	w := firstLive(t, 100)
	c := closeToLive(job.DiffLimit{})
	c.When, c.Every = job.CheckBoth, 20*time.Millisecond
	named := job.Check{Name: "named", SQL: `SELECT (SELECT n FROM live) = (SELECT n FROM previous)`, When: job.CheckAfter, Every: 20 * time.Millisecond}
	s := w.stage("bbb", auto, withChecks(c, named))
	w.finish(s.Deployment, "live", job.ExitOK)
	for _, name := range []string{"close_to_live", "named"} {
		w.await("a pass after the flip", func() bool {
			got := w.check(2, name)
			return got.Stage == job.CheckAfter && got.Outcome == "pass" && (got.Diff == nil || got.Diff.A == "v1" && got.Diff.Same == 1)
		})
	}
	w.must(1, ledger.Pause, ledger.Args{})
	for _, name := range []string{"close_to_live", "named"} {
		w.await("no answer", func() bool {
			got := w.check(2, name)
			return got.Outcome == "no answer" && got.Detail == "v1, which was live before, is paused"
		})
	}
	w.event("check_without_answer", 2)
	w.must(1, ledger.Resume, ledger.Args{})
	w.await("an answer again", func() bool { return w.check(2, "close_to_live").Outcome == "pass" })
	if w.live() != "v2" || w.deployment(s.Deployment).State != job.Observing {
		t.Errorf("live is %s, %+v", w.live(), w.deployment(s.Deployment))
	}
	w.event("check_passed", 4)
}

// event waits until there are so many events of a kind about v2.
func (w *world) event(kind ledger.EventKind, want int) {
	w.t.Helper()
	w.await(string(kind), func() bool {
		events, err := w.store.History(w.t.Context(), "counts", nil, 1000)
		if err != nil {
			w.t.Fatal(err)
		}
		n := 0
		for _, e := range events {
			if e.Kind == kind {
				n++
			}
		}
		return n >= want
	})
}

func TestReadersThatCannotGoBackByThemselvesAreSaid(t *testing.T) {
	w := firstLive(t, 100)
	s := w.stage("bbb", auto, withChecks(small))
	w.finish(s.Deployment, "live", job.ExitOK)
	w.must(1, ledger.Pause, ledger.Args{})
	w.brokers.produce(0, 100)
	w.await("the message", func() bool { return w.deployment(s.Deployment).Message != "" })
	d := w.deployment(s.Deployment)
	has(t, d.Message, `check "small" failed twice in a row`, "automatic rollback to v1 failed", "paused")
	has(t, d.Next, "--stale")
	w.event("not_rolled_back", 1)
	w.await("further failures", func() bool { return w.check(2, "small").Failures >= 6 })
	if n := w.text(`SELECT count(*)::text FROM kappactl.event WHERE kind = 'check_failed'`); n != "2" {
		t.Errorf("%s failures are in the history, want the two that decide", n)
	}
	if n := w.text(`SELECT count(*)::text FROM kappactl.event WHERE kind = 'not_rolled_back'`); n != "1" {
		t.Errorf("%s failed rollbacks are in the history, want one for the same cause", n)
	}
	if d.State != job.Observing || d.ExitCode != nil || w.live() != "v2" {
		t.Errorf("%+v", d)
	}
	w.must(1, ledger.Resume, ledger.Args{})
	w.finish(s.Deployment, "settled", job.ExitRolledBack)
	w.exact()
}

func TestAWindowThatEndsWhileReadersCannotGoBackEndsWithTheCheck(t *testing.T) {
	w := firstLive(t, 100)
	s := w.stage("bbb", auto, withChecks(small))
	w.finish(s.Deployment, "live", job.ExitOK)
	w.must(1, ledger.Pause, ledger.Args{})
	w.brokers.produce(0, 100)
	w.await("the message", func() bool { return w.deployment(s.Deployment).Message != "" })
	w.overdue()
	d := w.finish(s.Deployment, "settled", job.ExitChecks)
	has(t, d.Message, `the rollback window of counts/v2 is over and check "small" fails: it returned false`, "automatic rollback to v1 failed", "paused")
	has(t, d.Next, "kappactl deploy FILE")
	if d.State != job.Settled || w.live() != "v2" {
		t.Errorf("%+v", d)
	}
	w.finish(s.Deployment, "live", job.ExitOK)
}

func TestWhatReadersCouldNotGoBackForIsForgottenWhenTheCheckPassesAgain(t *testing.T) {
	w := firstLive(t, 100)
	w.sql(`CREATE TABLE public.bound (n bigint)`)
	w.sql(`INSERT INTO public.bound VALUES (50)`)
	bounded := job.Check{Name: "bounded", SQL: `SELECT (SELECT n FROM live) < (SELECT n FROM public.bound)`, When: job.CheckAfter, Every: 20 * time.Millisecond}
	s := w.stage("bbb", auto, withChecks(bounded))
	w.finish(s.Deployment, "live", job.ExitOK)
	w.must(1, ledger.Pause, ledger.Args{})
	w.await("the message", func() bool { return w.deployment(s.Deployment).Message != "" })
	w.sql(`UPDATE public.bound SET n = 500`)
	w.await("no message", func() bool { d := w.deployment(s.Deployment); return d.Message == "" && d.Next == "" })
	w.event("no_rollback_needed", 1)
	w.sql(`UPDATE public.bound SET n = 50`) // the same cause again is said again
	w.await("the message again", func() bool { return w.deployment(s.Deployment).Message != "" })
	w.sql(`UPDATE public.bound SET n = 500`)
	w.await("no message again", func() bool { return w.deployment(s.Deployment).Message == "" })
	w.overdue()
	w.finish(s.Deployment, "settled", job.ExitOK)
}

// TestACheckThatWasChangedInPlaceSpeaksOnlyWhenItHasRun: nobody knows yet that it passes.
func TestACheckThatWasChangedInPlaceSpeaksOnlyWhenItHasRun(t *testing.T) {
	w := firstLive(t, 100)
	below := func(sql string) func(*plan.Staging) {
		return withChecks(job.Check{Name: "bounded", SQL: sql, When: job.CheckAfter, Every: 20 * time.Millisecond})
	}
	s := w.stage("bbb", auto, below(`SELECT n < 50 FROM live`))
	w.finish(s.Deployment, "live", job.ExitOK)
	w.must(1, ledger.Pause, ledger.Args{})
	w.await("the message", func() bool { return w.deployment(s.Deployment).Message != "" })
	w.stage("bbb", auto, below(`SELECT n < 60 FROM live`))
	w.await("failures as it stands now", func() bool {
		return w.text(`SELECT (count(*) > 0)::text FROM kappactl.check_result WHERE definition ->> 'sql' LIKE '%60%' AND failures >= 2`) == "true"
	})
	if d := w.deployment(s.Deployment); d.Message == "" || w.text(`SELECT count(*)::text FROM kappactl.event WHERE kind = 'no_rollback_needed'`) != "0" {
		t.Errorf("it fails, and was taken for one that passes: %+v", d)
	}
	w.stage("bbb", auto, below(`SELECT n < 500 FROM live`))
	w.await("no message", func() bool { d := w.deployment(s.Deployment); return d.Message == "" && d.Next == "" })
	w.event("no_rollback_needed", 1)
	w.stage("bbb", auto, below(`SELECT n < 50 FROM live`))
	w.await("the message again", func() bool { return w.deployment(s.Deployment).Message != "" })
	w.stage("bbb", auto, withChecks())
	w.await("no message without the check", func() bool { return w.deployment(s.Deployment).Message == "" })
}

func TestAnotherAgentFinishesAFlipBackThatDiedAtAnyStep(t *testing.T) {
	for _, point := range []string{
		reprocess.FaultCheckNoted, reprocess.FaultPromoteHeld, reprocess.FaultPromoteChecked, reprocess.FaultPromoteFlipping, reprocess.FaultPromoteFlipped,
	} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t, 100, 50)
			stop := w.run(1, nil)
			w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
			s := w.stage("bbb", auto, withChecks(job.Check{Name: "wrong", SQL: `SELECT n <> 155 FROM live`, When: job.CheckAfter, Every: 20 * time.Millisecond}))
			w.finish(s.Deployment, "live", job.ExitOK)
			stop()
			w.alone = true
			defer w.worker()()
			w.brokers.produce(0, 5)
			w.exact()
			w.crash(point, func() {})
			w.finish(s.Deployment, "settled", job.ExitRolledBack)
			w.brokers.produce(0, 5)
			w.exact()
			var flips int
			if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM kappactl.event WHERE kind = 'rolled_back'`).Scan(&flips); err != nil {
				t.Fatal(err)
			}
			if flips != 1 || w.live() != "v1" {
				t.Errorf("%d flips back, live is %s", flips, w.live())
			}
		})
	}
}
