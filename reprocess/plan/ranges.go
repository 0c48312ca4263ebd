package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
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

// ranges are what to replay of the topics: from the job's start point to the last stable offset. A start point that
// lies before the log start is a gap.
func ranges(ctx context.Context, brokers Brokers, spec *job.Spec, facts []job.TopicFacts, now time.Time) ([]job.Frozen,
	error,
) {
	from, err := startOffsets(ctx, brokers, spec, facts, now)
	if err != nil {
		return nil, err
	}
	sizes, err := brokers.Sizes(ctx, spec.Source.Topics)
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
			start, gap := from(t, p)
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
		return nil, ledger.RefuseFor(job.ExitGap, "set replay.start: earliest, or a later start point, and deploy again",
			reason.ReplayGap(spec.Replay.Start, gaps))
	}
	return out, nil
}

// startOffset gives the first offset of a partition, or why that is a gap.
type startOffset func(t job.TopicFacts, p job.PartitionFacts) (int64, string)

func startOffsets(ctx context.Context, brokers Brokers, spec *job.Spec, facts []job.TopicFacts,
	now time.Time,
) (startOffset, error) {
	switch start := spec.Replay.Start; {
	case spec.Replay.Offsets != nil:
		if unknown := unknownPartitions(spec.Replay.Offsets, facts); len(unknown) > 0 {
			return nil, ledger.RefuseFor(job.ExitUsage, "name the partitions that the topics have",
				reason.UnknownPartitions(unknown))
		}
		return func(_ job.TopicFacts, p job.PartitionFacts) (int64, string) { return explicit(p, spec.Replay.Offsets) }, nil
	case start == startEarliest || start == "":
		return func(_ job.TopicFacts, p job.PartitionFacts) (int64, string) { return p.Start, "" }, nil
	case start == startLatest:
		return func(_ job.TopicFacts, p job.PartitionFacts) (int64, string) { return p.LastStable, "" }, nil
	}
	at, ok := spec.Replay.StartTime(now)
	if !ok {
		return nil, ledger.RefuseFor(job.ExitUsage, "use earliest, latest, a time as 2026-01-31T00:00:00Z, or -30d",
			reason.NoStartPoint(spec.Replay.Start))
	}
	found, err := offsetsAt(ctx, brokers, spec.Source.Topics, at)
	if err != nil {
		return nil, err
	}
	return func(t job.TopicFacts, p job.PartitionFacts) (int64, string) {
		first, known := found[p.Partition]
		switch {
		case !known:
			return p.Start, "" // made in between
		case first > p.Start || p.Start == 0 || keepsSince(t, at, now):
			return max(first, p.Start), ""
		}
		return 0, fmt.Sprintf("%s: the log begins at offset %d; records since %s before it may be deleted", p.Partition,
			p.Start, at.UTC().Format(time.RFC3339))
	}, nil
}

// keepsSince reports whether what retention has deleted is older than at: it deletes by time only, and keeps longer
// than that.
func keepsSince(t job.TopicFacts, at, now time.Time) bool {
	return t.RetentionBytes < 0 && t.RetentionMS >= 0 && !t.Compacted && now.Sub(at).Milliseconds() < t.RetentionMS
}

// unknownPartitions are those of a start point by offsets that no topic has.
func unknownPartitions(offsets map[string]int64, facts []job.TopicFacts) []string {
	known := map[string]bool{}
	for _, t := range facts {
		for _, p := range t.Partitions {
			known[p.String()] = true
		}
	}
	var out []string
	for name := range offsets {
		if !known[name] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func offsetsAt(ctx context.Context, brokers Brokers, names []string, at time.Time) (map[job.Partition]int64, error) {
	facts, err := brokers.OffsetsAt(ctx, names, at)
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
		return 0, fmt.Sprintf("gap %s %s: the log begins at offset %d", p.Partition, job.Range{From: from, To: p.Start},
			p.Start)
	case from > p.End:
		return 0, fmt.Sprintf("%s: offset %d is beyond the end of the log, %d", p.Partition, from, p.End)
	}
	return from, ""
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

func starts(frozen []job.Frozen) []readiness.Start {
	out := make([]readiness.Start, len(frozen))
	for i, f := range frozen {
		out[i] = readiness.Start{Partition: f.Partition, From: f.From}
	}
	return out
}

func covered(positions []job.Position) []readiness.Start {
	out := make([]readiness.Start, len(positions))
	for i, p := range positions {
		out[i] = readiness.Start{Partition: p.Partition, From: p.CoversFrom}
	}
	return out
}
