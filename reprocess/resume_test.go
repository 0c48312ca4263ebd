package reprocess_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// TestEveryFaultOfALiveVersionHasACommandToTryAgainAndOneToSkip: only gaps had one, and resume said that the version goes on.
func TestEveryFaultOfALiveVersionHasACommandToTryAgainAndOneToSkip(t *testing.T) {
	for _, kind := range []job.FaultKind{job.FaultGap, job.FaultQuery, job.FaultRecord, job.FaultTooLarge, job.FaultArchive} {
		t.Run(string(kind), func(t *testing.T) {
			w := firstLive(t, 100)
			stop := func() {
				w.sql(`UPDATE kappactl.position SET fault = '` + string(kind) + `', fault_detail = 'x', fault_from = next, fault_to = next + 1 WHERE number = 1`)
				w.await("unhealthy", func() bool { return w.version(1).Verdict == job.Unhealthy })
			}
			stop()
			for _, want := range []string{"kappactl resume counts v1 (tries again)", "--accept-gap events/0:100-101"} {
				if reason := w.version(1).Reason; !strings.Contains(reason, want) {
					t.Errorf("reason %q, want %q", reason, want)
				}
			}
			w.brokers.produce(0, 20)
			if a := w.ask(1, ledger.Resume, ledger.Args{}); a.Code != job.ExitOK || !strings.Contains(a.Text(), "tries events/0 again") {
				t.Errorf("resume: %+v", a)
			}
			w.await("all is read", func() bool { return w.shown() == 120 && w.version(1).Verdict != job.Unhealthy })
			if a := w.ask(1, ledger.Resume, ledger.Args{}); a.Code != job.ExitOK || !strings.Contains(a.Text(), "nothing changes") {
				t.Errorf("resume of a version without a fault: %+v", a)
			}
			w.setIdle(1, true)
			stop()
			skip := ledger.Args{AcceptGap: []ledger.Gap{{Topic: "events", Partition: 0, From: 120, To: 121}}}
			if a := w.ask(1, ledger.Resume, skip); a.Code != job.ExitOK {
				t.Fatalf("resume --accept-gap: %+v", a)
			}
			w.setIdle(1, false)
			w.brokers.produce(0, 5)
			w.await("what follows is read", func() bool { return w.shown() == 124 })
		})
	}
}

func TestResumeWithoutAVersionFindsTheOneThatHasAFault(t *testing.T) {
	w := firstLive(t, 10)
	if _, err := w.store.Resolve(t.Context(), "counts", ledger.Resume); err == nil {
		t.Fatal("nothing is paused and nothing has a fault")
	}
	w.finish(w.stage("bbb", auto).Deployment, "live", job.ExitOK)
	w.sql(`UPDATE kappactl.position SET fault = 'too_large', fault_from = 3, fault_to = 4 WHERE number = 2`)
	if ref, err := w.store.Resolve(t.Context(), "counts", ledger.Resume); err != nil || ref.Number != 2 {
		t.Errorf("%s, %v", ref, err)
	}
	w.sql(`UPDATE kappactl.position SET fault = 'too_large', fault_from = 3, fault_to = 4`)
	_, err := w.store.Resolve(t.Context(), "counts", ledger.Resume)
	var r *job.Refusal
	if !errors.As(err, &r) || r.Next != "kappactl resume counts v2, or: kappactl resume counts v1" {
		t.Errorf("%v", err)
	}
}
