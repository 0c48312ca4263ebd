package estimate

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/mergecheck"
	"github.com/kappactl/kappactl/internal/sample"
	"github.com/kappactl/kappactl/reprocess/plan"
)

func TestOnlyALargeReplayOnASmallDiskIsRefused(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	n := func(v int64) *int64 { return &v }
	for name, c := range map[string]struct {
		offsets     int64
		disk, stage *int64
		free        int64
		want        bool
	}{
		"more than twice what is free": {2_000_000, n(5 * gib), n(4 * gib), 4 * gib, true},
		"an estimate may be wrong":     {2_000_000, n(4 * gib), n(4 * gib), 4 * gib, false},
		"a small job":                  {2_000_000, n(gib / 2), n(gib / 4), 0, false},
		"a short log":                  {999_999, n(5 * gib), n(4 * gib), 0, false},
		"no estimate":                  {2_000_000, nil, nil, 0, false},
	} {
		err := DefaultRoom().Refusal(Replay{
			Offsets: c.offsets, DiskBytes: c.disk, StagingBytes: c.stage,
			WALBytes: n(99 * gib),
		}, c.free)
		if (err != nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPlanWarnsWhenTheDiskIsTooSmall(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	for name, c := range map[string]struct {
		free int64
		err  error
		why  string
		want string
	}{
		"room":                {free: 1000, want: ""},
		"close":               {free: 740, want: "has 740 B free and the replay needs up to 600 B"},
		"too small":           {free: 500, want: "make room before deploy"},
		"another machine":     {why: "PostgreSQL runs on another machine"},
		"a folder out of use": {err: errors.New("permission denied")},
	} {
		r := Replay{DiskBytes: n(300), StagingBytes: n(100), WALBytes: n(200)}
		got := strings.Join(r.Fits("/data", c.why, func(string) (int64, error) { return c.free, c.err }), "")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
		if unknown := c.why != "" || c.err != nil; unknown != (r.DiskUnknown != "") || unknown == (r.DiskFree != nil) {
			t.Errorf("%s: free %v, unknown %q", name, r.DiskFree, r.DiskUnknown)
		}
	}
}

func frozen(topic string, partition int32, from, to int64) job.Frozen {
	return job.Frozen{Partition: job.Partition{Topic: topic, ID: partition}, Range: job.Range{From: from, To: to}}
}

// piece is what was read of a partition: records of ten bytes each.
func piece(of job.Frozen, from, to int64, records int) sample.Piece {
	return sample.Piece{
		Partition: of.Partition, Range: job.Range{From: from, To: to}, Records: make([]*kgo.Record, records),
		Bytes: int64(10 * records),
	}
}

// TestASampleIsExtendedPartitionByPartition: offsets without a record, such as those of compacted records, count as
// such.
func TestASampleIsExtendedPartitionByPartition(t *testing.T) {
	full, sparse, unread := frozen("a", 0, 0, 1000), frozen("a", 1, 500, 1500), frozen("b", 0, 0, 100)
	got := extend([]job.Frozen{full, sparse, unread}, []sample.Piece{
		piece(full, 0, 100, 100), piece(sparse, 500, 600, 10), piece(sparse, 900, 1000, 30),
	})
	if want := (amount{records: 1000 + 200, bytes: 12000, sampled: 140}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestTheRateOfAnEarlierReplayIsPreferredAndMaxRateBoundsIt(t *testing.T) {
	spec := &job.Spec{}
	total := amount{records: 10_000, bytes: 1_000_000, sampled: 1000}
	m := mergecheck.Measured{Records: 1000, Query: time.Second}
	measured, rate := Replay{}, 5000.0
	measured.fill(spec, plan.Deploy{}, total, m, false)
	if measured.ETAFrom != "sample" || *measured.RecordsPerSecond != 1000 || *measured.ETASeconds != 10 {
		t.Errorf("from the sample: %s, %v records a second, %v s", measured.ETAFrom, *measured.RecordsPerSecond,
			*measured.ETASeconds)
	}
	known := Replay{Workers: 2}
	known.fill(spec, plan.Deploy{Rate: &rate}, total, m, false)
	if known.ETAFrom != "earlier replay" || *known.ETASeconds != 1 {
		t.Errorf("from an earlier replay: %s, %v s", known.ETAFrom, *known.ETASeconds)
	}
	spec.Replay.MaxRate = 10_000
	known.fill(spec, plan.Deploy{Rate: &rate}, total, m, false)
	if *known.ETASeconds != 100 {
		t.Errorf("with a max_rate: %v s", *known.ETASeconds)
	}
}

func TestDeadLettersAreWarnedOfWhenTheyStopTheReplayOrThePromote(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	some := Replay{Records: n(1000), DeadLetters: n(20), DeadLetterFirst: "no number"}
	for name, c := range map[string]struct {
		r    Replay
		fail bool
		most float64
		want string
	}{
		"the first stops it": {
			some, true, 0, "about 20 records cannot be processed, and on_error: fail stops at the first: no number",
		},
		"too many":            {some, false, 0.01, "more than on_error allows (1%)"},
		"as many as allowed":  {some, false, 0.02, ""},
		"none":                {Replay{Records: n(1000), DeadLetters: n(0)}, true, 0, ""},
		"nothing is measured": {Replay{}, true, 0, ""},
	} {
		spec := &job.Spec{}
		spec.Source.OnError.Fail, spec.Source.OnError.Max = c.fail, c.most
		if got := strings.Join(c.r.TooManyLetters(spec), ""); (got == "") != (c.want == "") ||
			!strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
