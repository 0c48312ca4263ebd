package readiness

import (
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

func TestTheDeadlineIsTheEarlierOfTimeAndSize(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := part("a", 1, 0)
	aged := func(bytes int64) Ages {
		a := NewAges(now, []job.TopicFacts{{Name: "a", RetentionBytes: bytes}})
		a.AddStep(p, 100, now)
		a.AddStep(p, 150, now.Add(time.Hour))
		a.AddStep(p, 300, now.Add(24*time.Hour))
		return a
	}
	byTime := aged(-1)
	for offset, want := range map[int64]time.Duration{0: 0, 99: 0, 100: 0, 149: 0, 150: time.Hour, 299: time.Hour, 300: 24 * time.Hour, 9000: 24 * time.Hour} {
		if got := byTime.Deadline(p, offset); got == nil || !got.Equal(now.Add(want)) {
			t.Errorf("offset %d: %v, want in %s", offset, got, want)
		}
	}
	both := aged(10_000)
	both.SetGrowth(p, job.Growth{End: 1000, BytesPerOffset: 10, OffsetsPerSecond: 1})
	for offset, want := range map[int64]time.Duration{0: 0, 150: 150 * time.Second, 500: 500 * time.Second} {
		if got := both.Deadline(p, offset); got == nil || !got.Equal(now.Add(want)) {
			t.Errorf("offset %d by size: %v, want in %s", offset, got, want)
		}
	}
	both.SetGrowth(p, job.Growth{End: 1000, BytesPerOffset: 10, OffsetsPerSecond: -1})
	if got := both.Deadline(p, 150); !got.Equal(now.Add(time.Hour)) {
		t.Errorf("a log that grows at an unknown rate: %s", got)
	}
	if got := NewAges(now, []job.TopicFacts{{Name: "a", RetentionBytes: -1}}).Deadline(p, 5); got != nil {
		t.Errorf("a topic that keeps everything: %s", got)
	}
}

// TestAReplayIsOvertakenWhereItHasNotReadInTime: not by what is older than its retention, which is read first.
func TestAReplayIsOvertakenWhereItHasNotReadInTime(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := job.Frozen{Partition: part("a", 1, 0), Range: job.Range{From: 0, To: 1600}}
	a := NewAges(now, []job.TopicFacts{{Name: "a", RetentionBytes: -1}})
	a.AddStep(f.Partition, 100, now)
	a.AddStep(f.Partition, 200, now.Add(time.Hour))
	a.AddStep(f.Partition, 800, now.Add(24*time.Hour))
	for takes, want := range map[time.Duration]time.Duration{
		time.Second: -1, 3 * time.Minute: -1, 10 * time.Minute: 0, // the first eighth, of which some may go at any moment
		100 * 365 * 24 * time.Hour: 0,
	} {
		at := a.Overtaken(f, takes)
		if (at == nil) != (want < 0) || at != nil && !at.Equal(now.Add(want)) {
			t.Errorf("a replay of %s: %v", takes, at)
		}
	}
	f.From = 200
	for takes, overtaken := range map[time.Duration]bool{time.Hour: false, 2 * time.Hour: true} {
		if at := a.Overtaken(f, takes); (at != nil) != overtaken {
			t.Errorf("a replay of %s that begins later: %v", takes, at)
		}
	}
	a = NewAges(now, []job.TopicFacts{{Name: "a", RetentionBytes: -1}})
	a.AddStep(f.Partition, 200, now.Add(time.Hour))
	if at := a.Overtaken(job.Frozen{Partition: f.Partition, Range: job.Range{From: 300, To: 300}}, time.Hour); at != nil {
		t.Errorf("nothing to read: %s", at)
	}
}

func TestRetentionIsLateOnlyWhenItComesBeforeTheEnd(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	soon, hour := now.Add(5*time.Minute), now.Add(time.Hour)
	for name, c := range map[string]struct {
		deadline *time.Time
		eta      *float64
		want     string
	}{
		"nothing is deleted":        {nil, ptr(1e9), ""},
		"in time":                   {&hour, ptr(3599.0), ""},
		"too late":                  {&hour, ptr(3601.0), "from 2026-01-01T01:00:00Z on (in 1h), before they are read (in about 1h0m1s)"},
		"an end beyond all clocks":  {&hour, ptr(1e300), "before they are read"},
		"an unknown end, and soon":  {&soon, nil, "when they will be read is unknown"},
		"an unknown end, far ahead": {&hour, nil, ""},
		"over already":              {&now, ptr(10.0), "a/0 now, before they are read"},
	} {
		got := Expiry{Deadline: c.deadline, At: "a/0", ETASeconds: c.eta}.Warning(now, 1).Text()
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	for eta, want := range map[float64]bool{2879: false, 2881: true, 3601: true} {
		if got := (Expiry{Deadline: &hour, At: "a/0", ETASeconds: &eta}).Warning(now, StillLate); (!got.IsZero()) != want {
			t.Errorf("it was late, and %v s are to go now: %s", eta, got)
		}
	}
	topic := job.TopicFacts{Name: "a", Compacted: true, DeleteRetentionMS: time.Hour.Milliseconds()}
	for took, want := range map[time.Duration]string{time.Minute: "", 50 * time.Minute: "deletes may be missed", 2 * time.Hour: "keys deleted since may stay"} {
		if got := TombstonesLost(topic, now, now.Add(-took), ptr(900.0)).Text(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("after %s: %q", took, got)
		}
	}
}
