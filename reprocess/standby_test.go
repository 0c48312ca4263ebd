package reprocess_test

import (
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// TestAStandbyFlipsOnlyWhenAskedAndChecked is what CI does after a git revert: it deploys the file of the standby.
func TestAStandbyFlipsOnlyWhenAskedAndChecked(t *testing.T) {
	w := firstLive(t, 100)
	second := w.stage("bbb", auto).Deployment
	w.finish(second, "live", job.ExitOK)
	never := func(in *plan.Staging) {
		spec := *in.Spec
		spec.Checks = []job.Check{{Name: "never", SQL: "SELECT false", When: job.CheckBefore}}
		in.Spec = &spec
	}
	until := func(goal string) func(*plan.Staging) {
		return func(in *plan.Staging) { in.Until = goal }
	}
	manual := func(in *plan.Staging) { in.Promote = job.PromoteManual }

	w.finish(w.stage("aaa", until("staged")).Deployment, "staged", job.ExitOK)
	w.finish(w.stage("aaa", until("caught_up")).Deployment, "caught_up", job.ExitOK)
	w.finish(w.stage("aaa", until("verified"), auto).Deployment, "verified", job.ExitOK)
	w.finish(w.stage("aaa", manual).Deployment, "verified", job.ExitOK)
	if w.live() != "v2" {
		t.Fatalf("%s is live, although nobody asked for a flip", w.live())
	}
	w.finish(w.stage("aaa", never, auto).Deployment, "live", job.ExitChecks)
	if w.live() != "v2" {
		t.Fatal("a standby was promoted past a check that fails")
	}
	if a := w.ask(1, ledger.Promote, ledger.Args{}); a.Code != job.ExitChecks || w.live() != "v2" {
		t.Errorf("promote by name: %+v", a)
	}
	if a := w.ask(1, ledger.Promote, ledger.Args{DryRun: true}); a.Code != job.ExitChecks {
		t.Errorf("the dry run of a promote that is refused: %+v", a)
	}
	byFile := func(in *plan.Staging) {
		spec := *in.Spec
		spec.Promote = job.PromoteManual
		in.Spec = &spec
	}
	w.finish(w.stage("aaa", byFile).Deployment, "verified", job.ExitOK)
	if w.live() != "v2" {
		t.Fatal("promote: manual of the file was overruled by the --promote auto of an earlier deploy")
	}
	first := w.stage("aaa", auto).Deployment
	w.finish(first, "live", job.ExitOK)
	if w.live() != "v1" {
		t.Errorf("%s is live after a promote that was asked for and checked", w.live())
	}
	w.exact()
	// Who waits for live is answered by what is live now, not by what a deployment once reached.
	if code, done := w.deployment(second).Outcome("live"); !done || code == job.ExitOK {
		t.Errorf("waiting for a version that is standby ends with %d, %t", code, done)
	}
	w.must(2, ledger.Rollback, ledger.Args{})
	if code, done := w.deployment(first).Outcome("live"); !done || code == job.ExitOK {
		t.Errorf("waiting for a version that was rolled back ends with %d, %t", code, done)
	}
	w.must(1, ledger.Rollback, ledger.Args{})
	if code, done := w.deployment(first).Outcome("live"); !done || code != job.ExitOK {
		t.Errorf("waiting for a version that is live again ends with %d, %t", code, done)
	}
}

// TestADryRunAnswersAsTheActAndChangesNothing compares them in one state after another.
func TestADryRunAnswersAsTheActAndChangesNothing(t *testing.T) {
	w := firstLive(t, 100)
	acts := func(number job.Number, what string) {
		t.Helper()
		for _, act := range []struct {
			verb ledger.Verb
			args ledger.Args
		}{
			{verb: ledger.Retire}, {verb: ledger.Abort}, {verb: ledger.Pause}, {verb: ledger.Resume}, {verb: ledger.Promote}, {verb: ledger.Rollback},
		} {
			before := w.text(everything)
			act.args.DryRun = true
			tried := w.ask(number, act.verb, act.args)
			if after := w.text(everything); after != before {
				t.Errorf("%s: the dry run of %s changed\n%s\nto\n%s", what, act.verb, before, after)
			}
			if tried.Code == job.ExitOK {
				continue // the act itself would change the state of the next one
			}
			act.args.DryRun = false
			if real := w.ask(number, act.verb, act.args); real.Code != tried.Code || real.Text() != tried.Text() || real.Next != tried.Next {
				t.Errorf("%s: %s says %+v, its dry run %+v", what, act.verb, real, tried)
			}
		}
	}
	acts(1, "live")
	w.finish(w.stage("bbb").Deployment, "", job.ExitOK)
	acts(2, "verified")
	if a := w.ask(2, ledger.Promote, ledger.Args{DryRun: true}); a.Code != job.ExitOK {
		t.Errorf("a promote that nothing stands in the way of: %+v", a)
	}
	w.must(2, ledger.Promote, ledger.Args{})
	acts(1, "standby")
	if a := w.ask(1, ledger.Rollback, ledger.Args{DryRun: true}); a.Code != job.ExitOK || w.live() != "v2" {
		t.Errorf("a rollback that nothing stands in the way of: %+v", a)
	}
	w.must(1, ledger.Retire, ledger.Args{Now: true})
	acts(1, "retired")
	w.exact()
}

// everything is what an act could have changed, without what goes on by itself.
const everything = `SELECT concat_ws(E'\n', (SELECT string_agg(concat_ws(' ', number, phase, paused_at, pinned_at, ended_at), ', ' ORDER BY number) FROM kappactl.version),
	(SELECT string_agg(concat_ws(' ', id, state, exit_code, message), ', ' ORDER BY id) FROM kappactl.deployment),
	(SELECT string_agg(concat_ws(' ', kind, message), ', ' ORDER BY id) FROM kappactl.event WHERE kind NOT LIKE 'check%' AND kind <> 'phase'),
	(SELECT live::text FROM kappactl.job), pg_get_viewdef('public.counts'::regclass))`
