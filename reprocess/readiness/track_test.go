package readiness

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kappactl/kappactl/internal/job"
)

func live(position, end int64) Sample {
	return Sample{Phase: job.CatchingUp, Owned: true, Position: position, LastStable: end, End: end}
}

func TestLagTimeIsTheAgeOfTheOldestEndThatIsNotReached(t *testing.T) {
	var tr Track
	at := time.Unix(1000, 0)
	for i, c := range []struct {
		position, end int64
		lag           time.Duration
	}{
		{0, 10, 0}, // seen now
		{0, 20, time.Second},
		{10, 30, time.Second}, // 10 is reached, 20 was seen a second ago
		{30, 30, 0},
		{30, 30, 0},
		{30, 40, 0},
		{30, 40, time.Second},
	} {
		s := live(c.position, c.end)
		tr.Observe(at.Add(time.Duration(i)*time.Second), &s)
		if s.LagTime != c.lag {
			t.Errorf("sample %d: %s behind, want %s", i, s.LagTime, c.lag)
		}
	}
}

// TestTheAgeOfTheFirstEndIsNotKnown: what was unread at the first sample may be older than any limit.
func TestTheAgeOfTheFirstEndIsNotKnown(t *testing.T) {
	var tr Track
	limits := job.ReadySettings{MaxLagTime: 5 * time.Second}
	for i, c := range []struct {
		position, end int64
		known         bool
		want          job.Verdict
	}{
		{2, 103, false, job.Lagging}, // as behind a transaction that has been open for an hour
		{2, 103, false, job.Lagging},
		{102, 110, false, job.Lagging},
		{103, 110, true, job.Ready}, // 110 was seen a second ago
		{103, 120, true, job.Ready},
		{120, 120, true, job.Ready},
	} {
		s := live(c.position, c.end)
		tr.Observe(time.Unix(int64(1000+i), 0), &s)
		if got := Judge(s, limits); s.AtLeast == c.known || got.Verdict != c.want {
			t.Errorf("sample %d: at least %v, %+v; want known %v and %s", i, s.AtLeast, got, c.known, c.want)
		}
	}
	var seeded Track
	seeded.Seed(time.Unix(1000, 0), 50, 80, time.Second)
	s := live(50, 80)
	seeded.Observe(time.Unix(1001, 0), &s)
	if s.AtLeast {
		t.Error("what an earlier controller saw is not of unknown age")
	}
}

func TestAnIdleTopicHasNoLagHoweverOldItsRecords(t *testing.T) {
	var tr Track
	for i := range 100 {
		s := live(10, 10)
		tr.Observe(time.Unix(int64(1000+i), 0), &s)
		if s.LagTime != 0 || s.Idle != 0 {
			t.Fatalf("%+v", s)
		}
	}
}

func TestAnotherControllerGoesOnWithTheLagThatWasSeen(t *testing.T) {
	var tr Track
	now := time.Unix(1000, 0)
	tr.Seed(now.Add(-2*time.Second), 50, 80, 7*time.Second)
	s := live(50, 90)
	tr.Observe(now, &s)
	if s.LagTime != 9*time.Second {
		t.Errorf("%s behind, want 9s", s.LagTime)
	}
	s = live(60, 90)
	tr.Observe(now, &s)
	if s.LagTime != 2*time.Second {
		t.Errorf("%s behind, want 2s: 80 was seen 2s ago", s.LagTime)
	}
}

func TestHeldBeginsAnewWithEachTransaction(t *testing.T) {
	var tr Track
	at := func(i int) time.Time { return time.Unix(int64(1000+i), 0) }
	see := func(i int, stable int64) time.Duration {
		s := Sample{Phase: job.Live, Position: stable, LastStable: stable, End: 100 + int64(i)}
		tr.Observe(at(i), &s)
		return s.Held
	}
	for i, want := range []time.Duration{0, time.Second, 2 * time.Second} {
		if got := see(i, 50); got != want {
			t.Errorf("sample %d: held for %s, want %s", i, got, want)
		}
	}
	if got := see(3, 60); got != 0 {
		t.Errorf("another transaction is held for %s", got)
	}
}

func TestBeforeIsTheLagAMinuteAgo(t *testing.T) {
	var tr Track
	for i := range 62 {
		s := live(0, int64(100+i))
		tr.Observe(time.Unix(int64(1000+i), 0), &s)
		switch {
		case i < 60 && s.Before != nil:
			t.Fatalf("after %ds", i)
		case i >= 60 && (s.Before == nil || *s.Before != int64(100+i-60)):
			t.Fatalf("after %ds: %v", i, s.Before)
		}
	}
}

func TestRatesComeFromTheLastSamples(t *testing.T) {
	var tr Track
	s := live(0, 0)
	tr.Observe(time.Unix(1000, 0), &s)
	if _, _, ok := tr.Rates(); ok {
		t.Error("a rate from one sample")
	}
	for i := 1; i <= 30; i++ {
		speed := int64(10)
		if i > 15 {
			speed = 100
		}
		s = live(tr.window[len(tr.window)-1].read+speed, int64(1000*i))
		tr.Observe(time.Unix(int64(1000+i), 0), &s)
	}
	read, produced, ok := tr.Rates()
	if !ok || read != 100 || produced != 1000 {
		t.Errorf("%f, %f, %t", read, produced, ok)
	}
}

func TestThePhaseChangeFromReplayToLiveIsNoProgress(t *testing.T) {
	var tr Track
	s := Sample{Phase: job.Building, Position: 0, Remaining: 0, FrozenEnd: 100, End: 120, LastStable: 120}
	tr.Observe(time.Unix(1000, 0), &s)
	s = live(100, 120)
	tr.Observe(time.Unix(1001, 0), &s)
	if _, _, ok := tr.Rates(); ok {
		t.Error("a rate over the change")
	}
	if s.LagTime != time.Second {
		t.Errorf("%s behind: the end was seen a second ago", s.LagTime)
	}
}

func TestLagTimeNeverFallsFasterThanPositionsAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tr Track
		var position, end int64
		now := time.Unix(1000, 0)
		type seen struct {
			at  time.Time
			end int64
		}
		var all []seen
		for range rapid.IntRange(1, 200).Draw(t, "samples") {
			now = now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
			end += rapid.Int64Range(0, 5).Draw(t, "produced")
			position = min(end, position+rapid.Int64Range(0, 5).Draw(t, "read"))
			all = append(all, seen{now, end})
			s := live(position, end)
			tr.Observe(now, &s)
			want := time.Duration(0)
			for _, x := range all {
				if x.end > position {
					want = now.Sub(x.at)
					break
				}
			}
			if s.LagTime != want {
				t.Fatalf("%s, want %s", s.LagTime, want)
			}
		}
	})
}

func TestManyUnreadEndsAreThinnedWithoutLosingTheOldest(t *testing.T) {
	var tr Track
	for i := range 5000 {
		s := live(0, int64(i+1))
		tr.Observe(time.Unix(int64(1000+i), 0), &s)
		if s.LagTime != time.Duration(i)*time.Second {
			t.Fatalf("after %ds: %s", i, s.LagTime)
		}
	}
	if len(tr.ends) > maxEnds+1 || len(tr.window) > 70 {
		t.Errorf("%d ends, %d moments are kept", len(tr.ends), len(tr.window))
	}
}

func TestAPartitionThatAWorkerGaveUpAMomentAgoIsStarting(t *testing.T) {
	var k Track
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, c := range []struct {
		after time.Duration
		owned bool
		want  job.Verdict
	}{{0, true, job.Ready}, {time.Hour, true, job.Ready}, {time.Second, false, job.Starting}, {28 * time.Second, false, job.Starting}, {2 * time.Second, false, job.Stalled}} {
		now = now.Add(c.after)
		s := good()
		s.Owned = c.owned
		k.Observe(now, &s)
		if got := Judge(s, limits()); got.Verdict != c.want {
			t.Errorf("sample %d: %+v, want %s", i, got, c.want)
		}
	}
}
