package speedlayer

import (
	"context"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const (
	sqlGaps = `
SELECT topic_id::text AS topic_id, topic, partition, from_offset, to_offset
  FROM kappactl.accepted_gap WHERE job = @job AND number = @number AND NOT counted ORDER BY topic, topic_id, partition, from_offset`
	sqlPassedOver = `
SELECT topic_id::text AS topic_id, topic, partition, from_offset, to_offset
  FROM kappactl.accepted_gap WHERE job = @job AND number = @number AND unprocessable
UNION ALL
SELECT topic_id::text, topic, partition, "offset", "offset" + 1
  FROM kappactl.dead_letter WHERE job = @job AND number = @number AND reason = '` + reasonSkipped + `'
ORDER BY topic, topic_id, partition, from_offset`
)

// PassedOver are the offsets that a person left out of a version because they cannot be processed, in order: its
// results hold nothing of them, whether the records are there or not.
func (Store) PassedOver(ctx context.Context, db pg.DB, ref job.Ref) ([]job.PartitionRange, error) {
	return ranges(ctx, db, ref, sqlPassedOver)
}

// Gaps are the accepted gaps of a version of which its results hold nothing, in order. Offsets that the log lost after
// the version had counted them are none.
func (Store) Gaps(ctx context.Context, db pg.DB, ref job.Ref) ([]job.PartitionRange, error) {
	return ranges(ctx, db, ref, sqlGaps)
}

func ranges(ctx context.Context, db pg.DB, ref job.Ref, sql string) ([]job.PartitionRange, error) {
	type row struct {
		TopicID              string
		Topic                string
		Partition            int32
		FromOffset, ToOffset int64
	}
	found, err := pg.Structs[row](ctx, db, sql, refArgs(ref))
	if err != nil {
		return nil, fmt.Errorf("read accepted gaps of %s: %w", ref, err)
	}
	out := make([]job.PartitionRange, len(found))
	for i, r := range found {
		id, err := job.ParseTopicID(r.TopicID)
		if err != nil {
			return nil, fmt.Errorf("read accepted gaps of %s: %w", ref, err)
		}
		out[i] = job.PartitionRange{
			Partition: job.Partition{Topic: r.Topic, TopicID: id, ID: r.Partition},
			Range:     job.Range{From: r.FromOffset, To: r.ToOffset},
		}
	}
	return out, nil
}
