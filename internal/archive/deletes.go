package archive

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// FaultDeletes is the fault of a compacted topic whose archiver was behind for longer than the topic keeps tombstones:
// the archive may hold values whose deletes it will never see.
const FaultDeletes job.FaultKind = "deletes"

// LoseDeletes stops the partitions that were behind for too long, and notes below which offset their deletes may be
// missing. It returns the partitions. One whose row another transaction has locked is left to the next look, as in
// NoteSamples.
func (Store) LoseDeletes(ctx context.Context, db pg.DB) ([]LostDeletes, error) {
	out, err := pg.Collect(ctx, db, pgx.RowToStructByPos[LostDeletes], `UPDATE kappactl.archive_position p SET fault = @fault,
			fault_detail = format('the archive was behind since %s, and the topic keeps tombstones for %s: deletes of keys that are '
				'archived may be missing', to_char(p.caught_up_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), a.delete_retention),
			fault_from = p.next, fault_to = p.next, deletes_lost_to = p.next
		FROM kappactl.archive a
		WHERE a.topic_id = p.topic_id AND p.id IN (SELECT p.id FROM kappactl.archive_position p JOIN kappactl.archive a USING (topic_id)
			WHERE a.wanted_by <> '{}' AND p.fault = '' AND p.start_offset < p.next AND p.next < p.last_stable
			  AND p.caught_up_at + a.delete_retention < clock_timestamp()
			FOR NO KEY UPDATE OF p SKIP LOCKED)
		RETURNING a.topic, p.partition, p.start_offset, p.next`, pgx.NamedArgs{"fault": string(FaultDeletes)})
	if err != nil {
		return nil, fmt.Errorf("look for deletes that the archive has missed: %w", err)
	}
	return out, nil
}

// LostDeletes is a range of an archived partition: deletes of keys whose values are in it may be missing.
type LostDeletes struct {
	Topic     string
	Partition int32
	job.Range
}

// LostDeletes lists what a computation from the archive of these topics may bring back although it was deleted. It ends
// with what prune removes.
func (Store) LostDeletes(ctx context.Context, db pg.DB, topics []string) ([]LostDeletes, error) {
	out, err := pg.Collect(ctx, db, pgx.RowToStructByPos[LostDeletes], `SELECT a.topic, p.partition, p.start_offset, p.deletes_lost_to
		FROM kappactl.archive_position p JOIN kappactl.archive a USING (topic_id)
		WHERE a.topic = ANY (@topics) AND p.deletes_lost_to > p.start_offset ORDER BY a.topic, a.created_at, p.partition`,
		pgx.NamedArgs{"topics": topics})
	if err != nil {
		return nil, fmt.Errorf("read which deletes the archive of %v has missed: %w", topics, err)
	}
	return out, nil
}
