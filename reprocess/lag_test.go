package reprocess

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
)

func TestALagSeriesKeepsItsBeginningAndStaysSmall(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var l lagSeries
	counts := map[time.Duration]int{}
	for since := time.Duration(0); since <= 60*24*time.Hour; since += time.Second {
		if now := start.Add(since); l.due(now, job.Verified) {
			if l.count == 0 {
				l.first = now
			}
			l.last, l.phase, l.count = now, job.Verified, l.count+1
		}
		counts[since] = l.count
	}
	for since, least := range map[time.Duration]int{40 * time.Second: 41, time.Hour: 170, 7 * 24 * time.Hour: 350} {
		if counts[since] < least {
			t.Errorf("after %s: %d points, want %d or more", since, counts[since], least)
		}
	}
	if l.count > maxLagPoints {
		t.Errorf("%d points", l.count)
	}
	if !(lagSeries{count: 5, first: start, last: start, phase: job.Replaying}).due(start, job.Building) {
		t.Error("a change of phase is a point")
	}
}

func TestWhatIsUnknownOfAPartitionIsUnknownOfTheSum(t *testing.T) {
	one, two, rate := int64(10), int64(4), 2.5
	half, more := 0.5, 1.5
	got := lagOf([]observed{
		{Position: 6, LastStable: &one, Lag: &two, LagSeconds: &half, ReadRate: &rate}, {Position: 1, LastStable: &one, Lag: &two, LagSeconds: &more, ReadRate: &rate},
	})
	want := LagPoint{Position: new(int64(7)), End: new(int64(20)), LagRecords: new(int64(8)), LagSeconds: &more, RecordsPerSecond: new(5.0)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = lagOf([]observed{{Position: 6, LastStable: &one, Lag: &two}, {Position: 1}})
	if diff := cmp.Diff(LagPoint{Position: new(int64(7))}, got); diff != "" {
		t.Error(diff)
	}
}
