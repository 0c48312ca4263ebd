package sample

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

// Stretch is what Follow read of one partition.
type Stretch struct {
	Partition int32
	Records   []*kgo.Record
	Next      int64 // the offset after what was read
	AtEnd     bool  // nothing more was there when the read began
}

// Follow reads up to n committed records of a topic from the offsets on, an equal share from each partition. A
// partition without an offset is read from its first record that is not older than since. Offsets that retention has
// passed go on at the first record that is left.
func Follow(ctx context.Context, c kafka.Config, admin *kafka.Admin, topic string, next map[int32]int64,
	since time.Time, n int, now func() time.Time,
) ([]Stretch, error) {
	facts, err := admin.Offsets(ctx, []string{topic})
	if err != nil {
		return nil, fmt.Errorf("read the offsets of %s: %w", topic, err)
	}
	begin, err := admin.OffsetsAt(ctx, []string{topic}, since)
	if err != nil {
		return nil, fmt.Errorf("read the offsets of %s: %w", topic, err)
	}
	first := map[int32]int64{}
	for _, f := range begin {
		first[f.ID] = f.Start
	}
	ranges := make([]job.Frozen, len(facts))
	for i, f := range facts {
		if f.Err != nil {
			return nil, fmt.Errorf("read the offsets of %s: %w", f.Partition, f.Err)
		}
		from, known := next[f.ID]
		if !known {
			from = first[f.ID]
		}
		from = max(from, f.Start)
		ranges[i] = job.Frozen{
			Partition: f.Partition, Range: job.Range{From: from, To: max(from, f.LastStable)},
			LeaderEpoch: f.LeaderEpoch,
		}
	}
	reader, err := NewReader(c, now)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	pieces, err := reader.Oldest(ctx, ranges, n)
	if err != nil {
		return nil, err
	}
	out := make([]Stretch, len(pieces))
	for i, p := range pieces {
		out[i] = Stretch{Partition: p.ID, Records: p.Records, Next: p.To, AtEnd: p.To >= ranges[i].To}
	}
	return out, nil
}
