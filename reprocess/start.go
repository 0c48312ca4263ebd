package reprocess

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// The ways to say where a replay begins.
const (
	startEarliest = "earliest"
	startLatest   = "latest"
)

// Segments hold at most segmentOffsets offsets and, as far as the broker's log dirs tell, segmentBytes bytes. A log is
// compressed; compression says by how much the bytes on disk are assumed to grow.
const (
	segmentOffsets = 1_000_000
	segmentBytes   = 256 << 20
	compression    = 4
	segmentFloor   = 10_000
)

// ranges are what to replay of the topics: from the job's start point to the last stable offset. A start point that lies
// before the log start is a gap.
func ranges(ctx context.Context, topics Topics, spec *job.Spec, facts []job.TopicFacts, now time.Time) ([]job.Frozen, error) {
	from, err := startOffsets(ctx, topics, spec, now)
	if err != nil {
		return nil, err
	}
	sizes, err := topics.Sizes(ctx, spec.Source.Topics)
	if err != nil {
		sizes = nil // log dirs need a right that reading does not; without them a segment splits when it turns out too large
	}
	var out []job.Frozen
	var gaps []string
	for _, t := range facts {
		for _, p := range t.Partitions {
			if p.Err != nil {
				return nil, fmt.Errorf("offsets of %s: %w", p.Partition, p.Err)
			}
			start, gap := from(p)
			if gap != "" {
				gaps = append(gaps, gap)
				continue
			}
			out = append(out, job.Frozen{
				Partition: p.Partition, Range: job.Range{From: start, To: max(start, p.LastStable)}, LeaderEpoch: p.LeaderEpoch,
				SplitAt: splitAt(p, sizes[p.Partition]),
			})
		}
	}
	if len(gaps) > 0 {
		return nil, refuse(job.ExitGap, "set replay.start: earliest, or a later start point, and deploy again",
			"the replay cannot be complete: replay.start is %s and\n  %s", spec.Replay.Start, strings.Join(gaps, "\n  "))
	}
	return out, nil
}

// startOffsets gives a function from a partition to its first offset, or to why that is a gap.
func startOffsets(ctx context.Context, topics Topics, spec *job.Spec, now time.Time) (func(job.PartitionFacts) (int64, string), error) {
	switch start := spec.Replay.Start; {
	case spec.Replay.Offsets != nil:
		return func(p job.PartitionFacts) (int64, string) { return explicit(p, spec.Replay.Offsets) }, nil
	case start == startEarliest || start == "":
		return func(p job.PartitionFacts) (int64, string) { return p.Start, "" }, nil
	case start == startLatest:
		return func(p job.PartitionFacts) (int64, string) { return p.LastStable, "" }, nil
	}
	at, err := startTime(spec.Replay.Start, now)
	if err != nil {
		return nil, refuse(job.ExitUsage, "use earliest, latest, a time as 2026-01-31T00:00:00Z, or -30d", "replay.start: %v", err)
	}
	found, err := offsetsAt(ctx, topics, spec.Source.Topics, at)
	if err != nil {
		return nil, err
	}
	return func(p job.PartitionFacts) (int64, string) {
		first, ok := found[p.Partition]
		switch {
		case !ok:
			return p.Start, "" // made in between
		case first <= p.Start && p.Start > 0:
			return 0, fmt.Sprintf("%s: the log begins at offset %d; records since %s before it may be deleted", p.Partition, p.Start, at.UTC().Format(time.RFC3339))
		}
		return first, ""
	}, nil
}

func offsetsAt(ctx context.Context, topics Topics, names []string, at time.Time) (map[job.Partition]int64, error) {
	facts, err := topics.OffsetsAt(ctx, names, at)
	if err != nil {
		return nil, fmt.Errorf("offsets at %s: %w", at.UTC().Format(time.RFC3339), err)
	}
	out := make(map[job.Partition]int64, len(facts))
	for _, p := range facts {
		if p.Err != nil {
			return nil, fmt.Errorf("offset of %s at %s: %w", p.Partition, at.UTC().Format(time.RFC3339), p.Err)
		}
		out[p.Partition] = p.Start
	}
	return out, nil
}

func explicit(p job.PartitionFacts, offsets map[string]int64) (int64, string) {
	from, ok := offsets[p.String()]
	switch {
	case !ok:
		return 0, fmt.Sprintf("%s: replay.start names no offset for it", p.Partition)
	case from < p.Start:
		return 0, fmt.Sprintf("gap %s %s: the log begins at offset %d", p.Partition, job.Range{From: from, To: p.Start}, p.Start)
	case from > p.End:
		return 0, fmt.Sprintf("%s: offset %d is behind the end of the log, %d", p.Partition, from, p.End)
	}
	return from, ""
}

// startTime reads an RFC 3339 time or a duration back from now: -30d, -12h.
func startTime(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	back, ok := strings.CutPrefix(text, "-")
	if !ok || back == "" {
		return time.Time{}, fmt.Errorf("%q is neither a time nor a duration back", text)
	}
	var days time.Duration
	if d, rest, ok := strings.Cut(back, "d"); ok {
		n, err := strconv.ParseFloat(d, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("%q is neither a time nor a duration back", text)
		}
		days, back = time.Duration(n*float64(24*time.Hour)), rest
	}
	if back == "" {
		return now.Add(-days), nil
	}
	d, err := time.ParseDuration(back)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is neither a time nor a duration back", text)
	}
	return now.Add(-days - d), nil
}

// splitAt is the most offsets a segment of the partition may hold, 0 for the default.
func splitAt(p job.PartitionFacts, size int64) int64 {
	offsets := p.End - p.Start
	if size <= 0 || offsets <= 0 {
		return 0
	}
	each := float64(size) * compression / float64(offsets)
	if n := int64(segmentBytes / each); n < segmentOffsets {
		return max(segmentFloor, n)
	}
	return 0
}

func starts(frozen []job.Frozen) []Start {
	out := make([]Start, len(frozen))
	for i, f := range frozen {
		out[i] = Start{f.Partition, f.From}
	}
	return out
}

func covered(positions []job.Position) []Start {
	out := make([]Start, len(positions))
	for i, p := range positions {
		out[i] = Start{p.Partition, p.CoversFrom}
	}
	return out
}

// keptOffsets is where the time that both versions keep begins; nil when one of them keeps everything.
func keptOffsets(ctx context.Context, topics Topics, live, candidate *job.Spec, now time.Time) (map[job.Partition]int64, error) {
	if live.Serve.Keep <= 0 || candidate.Serve.Keep <= 0 {
		return nil, nil //nolint:nilnil // nothing expires
	}
	return offsetsAt(ctx, topics, candidate.Source.Topics, now.Add(-min(live.Serve.Keep, candidate.Serve.Keep)))
}
