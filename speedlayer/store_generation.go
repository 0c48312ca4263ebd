package speedlayer

import (
	"context"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const (
	sqlGenerationZero = `
INSERT INTO kappactl.generation (job, number, generation, state, live_at, keep)
SELECT job, number, 0, 'live', clock_timestamp(), layout -> 'keep' FROM kappactl.version WHERE job = @job AND number = @number
ON CONFLICT DO NOTHING`
	sqlRangesOfZero = `
INSERT INTO kappactl.generation_range (job, number, generation, topic_id, topic, partition, from_offset, to_offset, unread)
SELECT p.job, p.number, 0, p.topic_id, p.topic, p.partition, p.covers_from, p.frozen_end,
       coalesce((SELECT range_agg(int8range(g.from_offset, g.to_offset)) FROM kappactl.accepted_gap g
                  WHERE g.job = p.job AND g.number = p.number AND g.topic_id = p.topic_id AND g.partition = p.partition
                    AND NOT g.counted), '{}')
  FROM kappactl.position p WHERE p.job = @job AND p.number = @number
ON CONFLICT DO NOTHING`
)

// sealGeneration notes the replay of a version of mode lambda as its generation 0, which is live.
func sealGeneration(ctx context.Context, tx *pg.Tx, ref job.Ref) error {
	for _, sql := range []string{sqlGenerationZero, sqlRangesOfZero} {
		if _, err := tx.Exec(ctx, sql, refArgs(ref)); err != nil {
			return fmt.Errorf("note generation 0 of %s: %w", ref, err)
		}
	}
	return nil
}
