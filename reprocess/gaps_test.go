package reprocess_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/status"
)

func TestAVersionWithAnAcceptedGapIsNotPromotedByItself(t *testing.T) {
	w := firstLive(t, 100)
	w.setIdle(2, true)
	s := w.stage("bbb", func(s *plan.Staging) { s.Promote = job.PromoteAuto })
	w.await("replay", func() bool { return w.version(2).Phase == job.Replaying })
	w.brokers.set(func(b *brokers) { b.starts[0] = 60 }) // retention overtakes the replay
	w.sql(`UPDATE kappactl.segment SET state = 'failed', fault = 'gap', fault_from = 0, fault_to = 60 WHERE number = 2`)
	w.finish(s.Deployment, "live", job.ExitGap)
	w.must(2, ledger.Resume, ledger.Args{AcceptGap: []ledger.Gap{{Topic: "events", Partition: 0, From: 0, To: 60}}})
	gaps := w.version(2).Gaps
	want := status.Gap{Topic: "events", From: 0, To: 60, By: "ann"}
	if len(gaps) == 1 {
		want.At = gaps[0].At
	}
	if diff := cmp.Diff([]status.Gap{want}, gaps); diff != "" || gaps[0].At.IsZero() || len(w.version(1).Gaps) != 0 {
		t.Errorf("gaps in status: %s", diff)
	}
	w.setIdle(2, false)
	w.await("a refusal of the flip", func() bool {
		d := w.deployment(s.Deployment)
		return d.ExitCode != nil && w.version(2).Phase == job.Verified || w.live() == "v2"
	})
	d := w.finish(s.Deployment, "live", job.ExitGap)
	if w.live() != "v1" || w.shown() != 100 {
		t.Fatalf("live %s shows %d: %+v", w.live(), w.shown(), d)
	}
	has(t, d.Message, "covers less history", "events/0: v2 goes on behind an accepted gap, offsets 0 to 60 (60 offsets)")
	has(t, d.Next, "--accept-shorter-history=")
	if a := w.ask(2, ledger.Promote, ledger.Args{}); a.Code != job.ExitGap {
		t.Errorf("promote by name: %+v", a)
	}
	token := d.Next[len(d.Next)-12:]
	w.must(2, ledger.Promote, ledger.Args{AcceptShorterHistory: token})
	if w.live() != "v2" {
		t.Errorf("live is %s", w.live())
	}
}

func TestRollbackBehindAnAcceptedGapNeedsStale(t *testing.T) {
	w := firstLive(t, 100)
	w.finish(w.stage("bbb", func(s *plan.Staging) { s.Promote = job.PromoteAuto }).Deployment, "live", job.ExitOK)
	w.setIdle(1, true)
	w.await("v1 has read its records", func() bool { return w.version(1).Phase == job.Standby })
	w.brokers.produce(0, 50)
	w.await("v2 reads them", func() bool { return w.shown() == 150 })
	w.sql(`UPDATE kappactl.position SET next = 100, fault = 'gap', fault_detail = 'x', fault_from = 100, fault_to = 150 WHERE number = 1`)
	w.await("stale", func() bool { return w.version(1).StaleSince != nil })
	w.must(1, ledger.Resume, ledger.Args{AcceptGap: []ledger.Gap{{Topic: "events", Partition: 0, From: 100, To: 150}}})
	w.setIdle(1, false)
	w.brokers.produce(0, 10)
	w.await("both are at the end", func() bool { return w.version(1).Verdict == job.Ready && w.shown() == 160 })
	a := w.ask(1, ledger.Rollback, ledger.Args{})
	if a.Code != job.ExitGap || w.live() != "v2" || w.shown() != 160 {
		t.Fatalf("live %s shows %d: %+v", w.live(), w.shown(), a)
	}
	has(t, a.Text(), "events/0: v1 goes on behind an accepted gap, offsets 100 to 150 (50 offsets), which v2 has read")
	has(t, a.Next, "kappactl rollback counts v1 --stale")
	w.must(1, ledger.Rollback, ledger.Args{Stale: true})
	if w.live() != "v1" {
		t.Errorf("live is %s", w.live())
	}
}
