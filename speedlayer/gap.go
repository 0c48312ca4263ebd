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
	// Of a log that was cut off, what lies in the gap was counted before, and the position is behind it already.
	sqlGapPosition = `
WITH gone AS (
    SELECT topic_id, next >= @to AS counted FROM kappactl.position
     WHERE job = @job AND number = @number AND topic = @topic AND partition = @partition
       AND fault = 'gap' AND fault_from = @from AND fault_to = @to AND (next = @from OR next >= @to) FOR UPDATE)
UPDATE kappactl.position AS p
   SET next = greatest(p.next, @to), fault = '', fault_detail = '', fault_from = NULL, fault_to = NULL, leader_epoch = -1
  FROM gone
 WHERE p.job = @job AND p.number = @number AND p.topic_id = gone.topic_id AND p.partition = @partition
RETURNING p.topic_id::text AS topic_id, gone.counted`
	// sqlGapSegment finds the segment of a replay that met the gap.
	sqlGapSegment = `
SELECT id, topic_id::text AS topic_id, CASE WHEN @to >= to_offset THEN greatest(from_offset, @from) ELSE from_offset END AS gone_from,
       least(to_offset, @to) AS gone_to, from_offset, to_offset
  FROM kappactl.segment
 WHERE job = @job AND number = @number AND topic = @topic AND partition = @partition
   AND state = 'failed' AND fault = 'gap' AND fault_from = @from AND fault_to = @to
 ORDER BY from_offset LIMIT 1 FOR UPDATE`
	// sqlGapTile stands for what is gone: a segment that is done and has no rows, so that segments still tile the range.
	sqlGapTile = `
INSERT INTO kappactl.segment (job, number, topic_id, topic, partition, from_offset, to_offset, state, rows, leader_epoch, done_at)
SELECT job, number, topic_id, topic, partition, @gone_from, @gone_to, 'done', 0, -1, clock_timestamp() FROM kappactl.segment WHERE id = @id`
	sqlGapRest = `
UPDATE kappactl.segment
   SET from_offset = @rest_from, to_offset = @rest_to, leader_epoch = -1, state = 'open', fault = '', error = '', fault_from = NULL, fault_to = NULL, attempts = 0
 WHERE id = @id`
	sqlGapGone = `DELETE FROM kappactl.segment WHERE id = @id`
	sqlGapNote = `
INSERT INTO kappactl.accepted_gap (job, number, topic_id, topic, partition, from_offset, to_offset, by, counted)
VALUES (@job, @number, @topic_id::uuid, @topic, @partition, @gap_from, @gap_to, @by, @counted)
ON CONFLICT (job, number, topic_id, partition, from_offset) DO UPDATE
   SET to_offset = greatest(accepted_gap.to_offset, excluded.to_offset), counted = accepted_gap.counted OR excluded.counted`
)

// AcceptGap lets a version go on behind offsets that the log no longer holds. The range must be the one that stands as the
// fault of the partition, so that nobody accepts another loss than the one that was shown; false says that it does not. The
// position goes behind the gap and the gap is noted, in tx: a reader of the version sees both or neither.
func (Store) AcceptGap(ctx context.Context, tx *pg.Tx, ref job.Ref, topic string, partition int32, gap job.Range, by string) (bool, error) {
	args := refArgs(ref)
	args["topic"], args["partition"], args["from"], args["to"], args["by"] = topic, partition, gap.From, gap.To, by
	moved, err := collectRows[gapMoved](ctx, tx, sqlGapPosition, args)
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
	args["topic_id"], args["gap_from"], args["gap_to"], args["counted"] = moved[0].TopicID, gone.From, gone.To, moved[0].Counted
	if _, err := tx.Exec(ctx, sqlGapNote, args); err != nil {
		return false, fmt.Errorf("note the gap %s/%d %s of %s: %w", topic, partition, gap, ref, err)
	}
	return true, nil
}

// gapMoved is what was moved behind a gap. Counted says that what is gone had been counted.
type gapMoved struct {
	TopicID string
	Counted bool
}

type gapSegment struct {
	ID         int64
	TopicID    string
	GoneFrom   int64
	GoneTo     int64
	FromOffset int64
	ToOffset   int64
}

// acceptInReplay leaves out of a replay what is gone; the segment had landed nothing. Where retention took the log's start, that
// is all of the segment below the gap's end, and the rest follows it; where the log's end was cut off, the rest lies before it.
func acceptInReplay(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs, gap job.Range) (moved []gapMoved, gone job.Range, err error) {
	found, err := collectRows[gapSegment](ctx, tx, sqlGapSegment, args)
	if err != nil || len(found) == 0 {
		return nil, gap, err
	}
	g := found[0]
	rest := job.Range{From: g.GoneTo, To: g.ToOffset}
	if g.GoneFrom > g.FromOffset {
		rest = job.Range{From: g.FromOffset, To: g.GoneFrom}
	}
	args["id"], args["gone_from"], args["gone_to"], args["rest_from"], args["rest_to"] = g.ID, g.GoneFrom, g.GoneTo, rest.From, rest.To
	steps := []string{sqlGapTile, sqlGapRest}
	if rest.Len() == 0 {
		steps[1] = sqlGapGone
	}
	for _, sql := range steps {
		if _, err := tx.Exec(ctx, sql, args); err != nil {
			return nil, gap, err
		}
	}
	return []gapMoved{{TopicID: g.TopicID}}, job.Range{From: g.GoneFrom, To: g.GoneTo}, nil
}
