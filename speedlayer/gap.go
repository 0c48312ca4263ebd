package speedlayer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const (
	// sqlGapPosition moves a position behind a gap that stands as its fault. Its worker finds the fault cleared at the
	// next renewal of its lease and goes on from the row; a commit that was prepared before does not fit the row any more.
	sqlGapPosition = `
UPDATE kappactl.position
   SET next = @to, fault = '', fault_detail = '', fault_from = NULL, fault_to = NULL, leader_epoch = -1
 WHERE job = @job AND number = @number AND topic = @topic AND partition = @partition
   AND fault = 'gap' AND fault_from = @from AND fault_to = @to AND next = @from
RETURNING topic_id::text`
	// sqlGapSegment finds the segment of a replay that met the gap.
	sqlGapSegment = `
SELECT id, topic_id::text AS topic_id, from_offset, least(to_offset, @to) AS gone_to, to_offset
  FROM kappactl.segment
 WHERE job = @job AND number = @number AND topic = @topic AND partition = @partition
   AND state = 'failed' AND fault = 'gap' AND fault_from = @from AND fault_to = @to
 ORDER BY from_offset LIMIT 1 FOR UPDATE`
	// sqlGapTile stands for what is gone: a segment that is done and has no rows, so that segments still tile the range.
	sqlGapTile = `
INSERT INTO kappactl.segment (job, number, topic_id, topic, partition, from_offset, to_offset, state, rows, leader_epoch, done_at)
SELECT job, number, topic_id, topic, partition, from_offset, @gone_to, 'done', 0, -1, clock_timestamp() FROM kappactl.segment WHERE id = @id`
	sqlGapRest = `
UPDATE kappactl.segment
   SET from_offset = @gone_to, state = 'open', fault = '', error = '', fault_from = NULL, fault_to = NULL, attempts = 0
 WHERE id = @id`
	sqlGapGone = `DELETE FROM kappactl.segment WHERE id = @id`
	sqlGapNote = `
INSERT INTO kappactl.accepted_gap (job, number, topic_id, topic, partition, from_offset, to_offset, by)
VALUES (@job, @number, @topic_id::uuid, @topic, @partition, @gap_from, @gap_to, @by)`
)

// AcceptGap lets a version go on behind offsets that the log no longer holds. The range must be the one that stands as the
// fault of the partition, so that nobody accepts another loss than the one that was shown; false says that it does not. The
// position goes behind the gap and the gap is noted, in tx: a reader of the version sees both or neither.
func (Store) AcceptGap(ctx context.Context, tx *pg.Tx, ref job.Ref, topic string, partition int32, gap job.Range, by string) (bool, error) {
	args := refArgs(ref)
	args["topic"], args["partition"], args["from"], args["to"], args["by"] = topic, partition, gap.From, gap.To, by
	moved, err := collectStrings(ctx, tx, sqlGapPosition, args)
	if err != nil {
		return false, fmt.Errorf("accept the gap %s/%d %s of %s: %w", topic, partition, gap, ref, err)
	}
	gone := gap
	if len(moved) == 0 {
		if moved, gone, err = acceptInReplay(ctx, tx, args, gap); err != nil {
			return false, fmt.Errorf("accept the gap %s/%d %s of %s: %w", topic, partition, gap, ref, err)
		}
	}
	if len(moved) == 0 {
		return false, nil
	}
	args["topic_id"], args["gap_from"], args["gap_to"] = moved[0], gone.From, gone.To
	if _, err := tx.Exec(ctx, sqlGapNote, args); err != nil {
		return false, fmt.Errorf("note the gap %s/%d %s of %s: %w", topic, partition, gap, ref, err)
	}
	return true, nil
}

type gapSegment struct {
	ID         int64
	TopicID    string
	FromOffset int64
	GoneTo     int64
	ToOffset   int64
}

// acceptInReplay leaves out of a replay what is gone. All of the segment below the gap's end is: the log is cut off at its
// start, and the segment had landed nothing.
func acceptInReplay(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs, gap job.Range) (topicID []string, gone job.Range, err error) {
	found, err := collectRows[gapSegment](ctx, tx, sqlGapSegment, args)
	if err != nil || len(found) == 0 {
		return nil, gap, err
	}
	g := found[0]
	args["id"], args["gone_to"] = g.ID, g.GoneTo
	steps := []string{sqlGapTile, sqlGapRest}
	if g.GoneTo == g.ToOffset {
		steps[1] = sqlGapGone
	}
	for _, sql := range steps {
		if _, err := tx.Exec(ctx, sql, args); err != nil {
			return nil, gap, err
		}
	}
	return []string{g.TopicID}, job.Range{From: g.FromOffset, To: g.GoneTo}, nil
}

func collectStrings(ctx context.Context, db pg.DB, sql string, args pgx.NamedArgs) ([]string, error) {
	rows, err := db.Query(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
