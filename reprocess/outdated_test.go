package reprocess_test

import (
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/status"
)

func (w *world) shownDeployment(id int64) status.Deployment {
	w.t.Helper()
	st, err := w.store.Status(w.t.Context(), "counts")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range st.Deployments {
		if d.Deployment == id {
			return d
		}
	}
	w.t.Fatalf("status does not list deployment %d", id)
	return status.Deployment{}
}

func TestACandidateThatAnotherFlipOvertookIsShownAsRefusedAndVerifiedAgainByDeploy(t *testing.T) {
	w := newWorld(t, 10)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
	w.finish(w.stage("bbb").Deployment, "", job.ExitOK)
	checked := withChecks(sql("some", `SELECT count(*) > 0 FROM candidate`))
	third := w.stage("ccc", checked)
	w.finish(third.Deployment, "", job.ExitOK)
	if d := w.shownDeployment(third.Deployment); d.Next != "kappactl promote counts v3" || d.ExitCode != nil {
		t.Fatalf("before the flip: %+v", d)
	}
	w.must(2, ledger.Promote, ledger.Args{})

	const text, next = "counts/v3 was verified beside another live version: v2 is live now", "kappactl deploy FILE   # verifies v3 again, beside v2"
	d := w.finish(third.Deployment, "live", job.ExitConflict)
	if d.Message != text || d.Next != next {
		t.Errorf("wait says %q, next %q", d.Message, d.Next)
	}
	if s := w.shownDeployment(third.Deployment); s.Message != text || s.Next != next || s.ExitCode == nil || *s.ExitCode != int(job.ExitConflict) {
		t.Errorf("status shows %+v", s)
	}
	if a := w.ask(3, ledger.Promote, ledger.Args{DryRun: true}); a.Code != job.ExitConflict || a.Text() != text || a.Next != next {
		t.Errorf("promote --dry-run: %+v", a)
	}
	runs := func() string {
		return w.text(`SELECT count(*)::text FROM kappactl.event WHERE number = 3 AND kind = 'checks_passed'`)
	}
	before := runs()
	if s := w.stage("ccc", checked); !s.Resumed || s.Deployment != third.Deployment {
		t.Fatalf("deploy: %+v", s)
	}
	d = w.finish(third.Deployment, "", job.ExitOK)
	if d.Next != "kappactl promote counts v3" || runs() == before {
		t.Errorf("after deploy: %+v; checks ran %s times before and %s after", d, before, runs())
	}
	w.must(3, ledger.Promote, ledger.Args{})
}

func TestACandidateIsNoLongerRefusedWhenTheSameVersionIsLiveAgain(t *testing.T) {
	w := newWorld(t, 10)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
	w.finish(w.stage("bbb").Deployment, "", job.ExitOK)
	third := w.stage("ccc")
	w.finish(third.Deployment, "", job.ExitOK)
	w.must(2, ledger.Promote, ledger.Args{})
	w.finish(third.Deployment, "live", job.ExitConflict)
	w.must(1, ledger.Rollback, ledger.Args{})
	if d := w.shownDeployment(third.Deployment); d.ExitCode != nil || d.Next != "kappactl promote counts v3" {
		t.Errorf("after the rollback: %+v", d)
	}
	w.must(3, ledger.Promote, ledger.Args{})
}

func TestAStandbyDeployedAgainIsShownAsRefusedAfterAnotherFlip(t *testing.T) {
	w := newWorld(t, 10)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
	w.finish(w.stage("bbb", auto).Deployment, "live", job.ExitOK)
	third := w.stage("ccc")
	w.finish(third.Deployment, "", job.ExitOK)
	until := func(s *plan.Staging) { s.Until, s.Promote = "verified", job.PromoteManual }
	first := w.stage("aaa", until)
	w.finish(first.Deployment, "", job.ExitOK)
	w.must(3, ledger.Promote, ledger.Args{})
	w.finish(first.Deployment, "live", job.ExitConflict)
	again := w.stage("aaa", until)
	if again.Deployment != first.Deployment {
		t.Fatalf("deploy: %+v", again)
	}
	w.finish(again.Deployment, "", job.ExitOK)
	w.must(1, ledger.Promote, ledger.Args{})
}
