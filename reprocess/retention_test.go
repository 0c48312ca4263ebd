package reprocess

import (
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

func TestTheDeadlineIsTheEarlierOfTimeAndSize(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := part("a", 1, 0)
	byTime := ages{
		at: now, topics: map[string]job.TopicFacts{"a": {RetentionBytes: -1}},
		steps: map[job.Partition][]ageStep{p: {{100, now}, {150, now.Add(time.Hour)}, {300, now.Add(24 * time.Hour)}}},
	}
	for offset, want := range map[int64]time.Duration{0: 0, 99: 0, 100: 0, 149: 0, 150: time.Hour, 299: time.Hour, 300: 24 * time.Hour, 9000: 24 * time.Hour} {
		if got := byTime.deadline(p, offset); got == nil || !got.Equal(now.Add(want)) {
			t.Errorf("offset %d: %v, want in %s", offset, got, want)
		}
	}
	both := byTime
	both.topics = map[string]job.TopicFacts{"a": {RetentionBytes: 10_000}}
	both.sizes = map[job.Partition]sized{p: {end: 1000, each: 10, perSecond: 1}}
	for offset, want := range map[int64]time.Duration{0: 0, 150: 150 * time.Second, 500: 500 * time.Second} {
		if got := both.deadline(p, offset); got == nil || !got.Equal(now.Add(want)) {
			t.Errorf("offset %d by size: %v, want in %s", offset, got, want)
		}
	}
	both.sizes = map[job.Partition]sized{p: {end: 1000, each: 10, perSecond: -1}}
	if got := both.deadline(p, 150); !got.Equal(now.Add(time.Hour)) {
		t.Errorf("a log of which nobody knows how fast it grows: %s", got)
	}
	if got := (ages{topics: map[string]job.TopicFacts{"a": {RetentionBytes: -1}}}).deadline(p, 5); got != nil {
		t.Errorf("a topic that keeps everything: %s", got)
	}
}

// TestAReplayIsOvertakenWhereItHasNotReadInTime: not by what is older than its retention, which is read first.
func TestAReplayIsOvertakenWhereItHasNotReadInTime(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := job.Frozen{Partition: part("a", 1, 0), Range: job.Range{From: 0, To: 1600}}
	a := ages{
		at: now, topics: map[string]job.TopicFacts{"a": {RetentionBytes: -1}},
		steps: map[job.Partition][]ageStep{f.Partition: {{100, now}, {200, now.Add(time.Hour)}, {800, now.Add(24 * time.Hour)}}},
	}
	for takes, want := range map[time.Duration]time.Duration{
		time.Second: -1, 3 * time.Minute: -1, 10 * time.Minute: 0, // the first eighth, of which some may go at any moment
		100 * 365 * 24 * time.Hour: 0,
	} {
		at := a.overtaken(f, takes)
		if (at == nil) != (want < 0) || at != nil && !at.Equal(now.Add(want)) {
			t.Errorf("a replay of %s: %v", takes, at)
		}
	}
	f.From = 200
	for takes, overtaken := range map[time.Duration]bool{time.Hour: false, 2 * time.Hour: true} {
		if at := a.overtaken(f, takes); (at != nil) != overtaken {
			t.Errorf("a replay of %s that begins later: %v", takes, at)
		}
	}
	a.steps[f.Partition] = []ageStep{{200, now.Add(time.Hour)}}
	if at := a.overtaken(job.Frozen{Partition: f.Partition, Range: job.Range{From: 300, To: 300}}, time.Hour); at != nil {
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
		"too late":                  {&hour, ptr(3601.0), "from 2026-01-01T01:00:00Z on (in 1h), before it is read (in about 1h0m1s)"},
		"an end beyond all clocks":  {&hour, ptr(1e300), "before it is read"},
		"an unknown end, and soon":  {&soon, nil, "when it will be read is not known"},
		"an unknown end, far ahead": {&hour, nil, ""},
		"over already":              {&now, ptr(10.0), "a/0 now, before it is read"},
	} {
		got := late(now, c.deadline, c.eta, 1, "a/0")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	for eta, want := range map[float64]bool{2879: false, 2881: true, 3601: true} {
		if got := late(now, &hour, &eta, stillLate, "a/0"); (got != "") != want {
			t.Errorf("it was late, and %v s are to go now: %q", eta, got)
		}
	}
	topic := job.TopicFacts{Name: "a", Compacted: true, DeleteRetentionMS: time.Hour.Milliseconds()}
	for took, want := range map[time.Duration]string{time.Minute: "", 50 * time.Minute: "deletes may be missed", 2 * time.Hour: "keys deleted since may stay"} {
		if got := tombstonesLost(topic, now, now.Add(-took), ptr(900.0)); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("after %s: %q", took, got)
		}
	}
}
