package readiness

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
)

func TestALagSeriesKeepsItsBeginningAndStaysSmall(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var l LagSeries
	counts := map[time.Duration]int{}
	for since := time.Duration(0); since <= 60*24*time.Hour; since += time.Second {
		if now := start.Add(since); l.Due(now, job.Verified) {
			l.Add(now, job.Verified)
		}
		counts[since] = l.Count
	}
	for since, least := range map[time.Duration]int{40 * time.Second: 41, time.Hour: 170, 7 * 24 * time.Hour: 350} {
		if counts[since] < least {
			t.Errorf("after %s: %d points, want %d or more", since, counts[since], least)
		}
	}
	if l.Count > maxLagPoints {
		t.Errorf("%d points", l.Count)
	}
	if !(LagSeries{Count: 5, First: start, Last: start, Phase: job.Replaying}).Due(start, job.Building) {
		t.Error("a change of phase is a point")
	}
}

func TestWhatIsUnknownOfAPartitionIsUnknownOfTheSum(t *testing.T) {
	one, two, rate := int64(10), int64(4), 2.5
	half, more := 0.5, 1.5
	got := Sum([]Observation{
		{Position: 6, LastStable: &one, Lag: &two, LagSeconds: &half, ReadRate: &rate}, {Position: 1, LastStable: &one, Lag: &two, LagSeconds: &more, ReadRate: &rate},
	})
	want := Totals{Position: 7, LastStable: new(int64(20)), Lag: new(int64(8)), LagSeconds: &more, RecordsPerSecond: new(5.0)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = Sum([]Observation{{Position: 6, LastStable: &one, Lag: &two}, {Position: 1}})
	if diff := cmp.Diff(Totals{Position: 7}, got); diff != "" {
		t.Error(diff)
	}
}

func TestThereIsNoETABesideAVerdictThatDeniesIt(t *testing.T) {
	unread, read, produced := int64(100), 30.0, 10.0
	for _, v := range job.Verdicts() {
		got := ETA(v, &unread, &read, &produced)
		switch v {
		case job.NotConverging, job.Stalled, job.BlockedByTxn, job.Unknown:
			if got != nil {
				t.Errorf("%s: %v s", v, *got)
			}
		case job.Unhealthy, job.Starting, job.ReplayingRanges, job.Lagging, job.Holding, job.Ready:
			if got == nil || *got != 5 {
				t.Errorf("%s: %v, want 5 s", v, got)
			}
		}
	}
	if got := ETA(job.Lagging, &unread, &produced, &read); got != nil {
		t.Errorf("%v s, although more is produced than read", *got)
	}
}

func TestLagCountsReadableRecordsOnly(t *testing.T) {
	var tr Track
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := Sample{Phase: job.CatchingUp, Owned: true, Position: 40, LastStable: 50, End: 150}
	tr.Observe(now, &s)
	o := tr.Observation(s, nil, Judge(s, limits()))
	if *o.Lag != 10 || *o.LastStable != 50 || *o.End != 150 {
		t.Errorf("lag %d to %d of %d, want 10 to 50 of 150", *o.Lag, *o.LastStable, *o.End)
	}
	if got := o.Reason.Text(); got != "10 records behind, for at least 0s" {
		t.Error(got)
	}
}

// A transaction that stays open while others go on does not make a version that keeps up look as if it fell behind.
func TestRecordsOfAnOpenTransactionDoNotCountAsNotConverging(t *testing.T) {
	var tr Track
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range int64(90) {
		s := Sample{Phase: job.CatchingUp, Owned: true, Position: 200 + 2*i, LastStable: 300 + i, End: 1000 + 100*i}
		tr.Observe(start.Add(time.Duration(i)*time.Second), &s)
		s.Held = 0 // another transaction each time
		if j := Judge(s, limits()); j.Verdict == job.NotConverging {
			t.Fatalf("after %d s: %s", i, j.Reason)
		}
	}
}
