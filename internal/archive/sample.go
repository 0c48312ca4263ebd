package archive

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Sample is what a broker says about an archived partition.
type Sample struct {
	job.PartitionFacts
	Deadline *time.Time // when retention may begin to delete what is not archived; nil: it will not, or that is not known
}

// Unsampled are the positions of an archive's partitions whose logs were not looked at for a while, by partition.
func (Store) Unsampled(ctx context.Context, db pg.DB, id job.TopicID, within time.Duration) (map[int32]int64, error) {
	type row struct {
		Partition int32
		Next      int64
	}
	rows, err := pg.Collect(ctx, db, pgx.RowToStructByPos[row], `SELECT partition, next FROM kappactl.archive_position
		WHERE topic_id = @topic_id::uuid AND (sampled_at IS NULL OR sampled_at < clock_timestamp() - @within::interval)`,
		pgx.NamedArgs{"topic_id": id.String(), "within": pg.Interval(within)})
	if err != nil {
		return nil, fmt.Errorf("read positions of the archive: %w", err)
	}
	out := make(map[int32]int64, len(rows))
	for _, r := range rows {
		out[r.Partition] = r.Next
	}
	return out, nil
}

// NoteSamples notes where the logs of a topic's partitions begin and end. A partition whose row another transaction has
// locked is left to the next look: waiting for several rows in an order of its own, a sample could deadlock with agents
// that renew their leases.
func (Store) NoteSamples(ctx context.Context, db pg.DB, id job.TopicID, samples []Sample) error {
	var partitions []int32
	var starts, stables []int64
	var deadlines []*time.Time
	for _, s := range samples {
		partitions, starts, stables = append(partitions, s.ID), append(starts, s.Start), append(stables, s.LastStable)
		deadlines = append(deadlines, s.Deadline)
	}
	_, err := db.Exec(ctx, `UPDATE kappactl.archive_position p SET log_start = s.start, last_stable = s.stable, deadline = s.deadline,
			sampled_at = clock_timestamp(), caught_up_at = CASE WHEN p.next >= s.stable THEN clock_timestamp() ELSE p.caught_up_at END
		FROM unnest(@partitions::integer[], @starts::bigint[], @stables::bigint[], @deadlines::timestamptz[]) s (partition, start, stable, deadline)
		WHERE p.topic_id = @topic_id::uuid AND p.partition = s.partition
		  AND p.id IN (SELECT f.id FROM kappactl.archive_position f WHERE f.topic_id = @topic_id::uuid FOR NO KEY UPDATE SKIP LOCKED)`,
		pgx.NamedArgs{
			"topic_id": id.String(), "partitions": partitions, "starts": starts, "stables": stables,
			"deadlines": deadlines,
		})
	if err != nil {
		return fmt.Errorf("note where the logs of topic id %s end: %w", id, err)
	}
	return nil
}

// Archives lists the archives of all topics.
func (Store) Archives(ctx context.Context, db pg.DB) ([]Archive, error) {
	out, err := pg.Collect(ctx, db, scanArchive,
		`SELECT `+archiveColumns+` FROM kappactl.archive a ORDER BY a.topic, a.created_at`, pgx.NamedArgs{})
	if err != nil {
		return nil, fmt.Errorf("list archives: %w", err)
	}
	return out, nil
}
