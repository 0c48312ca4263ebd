package cli

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

func ptr[T any](v T) *T { return &v }

func TestProgressIsPrintedAtChangesAndNowAndThen(t *testing.T) {
	now := fixedNow()
	d := ledger.Deployment{Job: "pageviews", Number: 2, State: job.RollingOut, Phase: job.Replaying, Verdict: job.ReplayingRanges, Records: 1_200_000}
	v := &status.Version{LagRecords: ptr(int64(1_800_000)), RecordsPerSecond: ptr(900_000.0), ETASeconds: ptr(2.0)}
	p := progressLine{every: 10 * time.Second}
	var lines []string
	look := func() {
		if p.due(now, d) {
			if text := p.text(now, d, v); text != "" {
				lines = append(lines, text)
			}
		}
	}
	look()
	now = now.Add(9 * time.Second)
	look() // too early
	now = now.Add(2 * time.Second)
	look() // nothing new to say
	d.Records, v.LagRecords = 3_000_000, ptr(int64(0))
	v.RecordsPerSecond, v.ETASeconds = nil, nil
	now = now.Add(10 * time.Second)
	look()
	d.Phase, v.LagRecords = job.CatchingUp, nil
	d.Reason = reason.Behind(3, 6*time.Second)
	look()
	d.Phase, d.Verdict = job.Verified, job.Ready
	look()
	want := []string{
		"pageviews v2 replaying  1,200,000 records read, 1,800,000 to go  900k/s  ETA 2s",
		"pageviews v2 replaying  3,000,000 records read, 0 to go",
		"pageviews v2 catching_up  3 records, 6s behind",
		"pageviews v2 verified",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

func TestComingBackNamesWhatTheDeploymentGoesFor(t *testing.T) {
	for _, c := range []struct {
		goal    goal
		promote string
		want    string
	}{
		{"", "auto", "live"}, {"", "manual", "verified"}, {"staged", "manual", "verified"}, {"caught_up", "auto", "caught_up"},
	} {
		f := follower{goal: c.goal}
		got := f.comeBack(ledger.Deployment{Job: "a", Number: 3, Promote: c.promote})
		if want := "kappactl wait a v3 --for " + c.want + "   # the deployment goes on"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
