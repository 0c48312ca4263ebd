package speedlayer

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const (
	// sqlGapPosition moves a position behind the offsets of its fault. Its worker finds the fault cleared at the
	// next renewal of its lease and goes on from the row; a commit that was prepared before does not fit the row any more.
	// Of a log that was cut off, what lies in the gap was counted before, and the position is behind it already.
	sqlGapPosition = `
WITH gone AS (
    SELECT topic_id, next >= @to AS counted, fault, fault_detail FROM kappactl.position
     WHERE job = @job AND number = @number AND topic = @topic AND partition = @partition
       AND fault <> '' AND fault_from = @from AND fault_to = @to AND @from < @to
       AND CASE WHEN fault = 'gap' THEN next = @from OR next >= @to ELSE next < @to END FOR UPDATE)
UPDATE kappactl.position AS p
   SET next = greatest(p.next, @to), fault = '', fault_detail = '', fault_from = NULL, fault_to = NULL, leader_epoch = -1
  FROM gone
 WHERE p.job = @job AND p.number = @number AND p.topic_id = gone.topic_id AND p.partition = @partition
RETURNING false AS replayed, p.topic_id::text AS topic_id, gone.counted, gone.fault, gone.fault_detail`
	// sqlGapSegment finds the segment of a replay that has the fault.
	sqlGapSegment = `
SELECT id, topic_id::text AS topic_id,
       greatest(from_offset, @from) AS gone_from,
       least(to_offset, @to) AS gone_to, from_offset, to_offset, fault
  FROM kappactl.segment
 WHERE job = @job AND number = @number AND topic = @topic AND partition = @partition
   AND state = 'failed' AND fault IN ('gap', 'too_large', 'query', 'archive') AND fault_from = @from AND fault_to = @to
 ORDER BY from_offset LIMIT 1 FOR UPDATE`
	// sqlGapBefore opens what lies in the segment before the offsets that are gone, when something lies behind them too.
	sqlGapBefore = `
INSERT INTO kappactl.segment (job, number, topic_id, topic, partition, from_offset, to_offset, deadline, leader_epoch)
SELECT job, number, topic_id, topic, partition, from_offset, @gone_from, deadline, leader_epoch FROM kappactl.segment WHERE id = @id`
	// sqlGapTile represents the lost records: a segment that is done and has no rows, so that segments still tile the
	// range.
	sqlGapTile = `
INSERT INTO kappactl.segment (job, number, topic_id, topic, partition, from_offset, to_offset, state, rows, leader_epoch, done_at)
SELECT job, number, topic_id, topic, partition, @gone_from, @gone_to, 'done', 0, -1, clock_timestamp() FROM kappactl.segment WHERE id = @id`
	sqlGapRest = `
UPDATE kappactl.segment
   SET from_offset = @rest_from, to_offset = @rest_to, leader_epoch = -1, state = 'open', fault = '', error = '', fault_from = NULL, fault_to = NULL, attempts = 0
 WHERE id = @id`
	sqlGapGone = `DELETE FROM kappactl.segment WHERE id = @id`
	sqlGapNote = `
INSERT INTO kappactl.accepted_gap (job, number, topic_id, topic, partition, from_offset, to_offset, by, counted, unprocessable)
VALUES (@job, @number, @topic_id::uuid, @topic, @partition, @gap_from, @gap_to, @by, @counted, @fault::text = ANY (@unprocessable::text[]))
ON CONFLICT (job, number, topic_id, partition, from_offset) DO UPDATE
   SET to_offset = greatest(accepted_gap.to_offset, excluded.to_offset), counted = accepted_gap.counted OR excluded.counted,
       unprocessable = accepted_gap.unprocessable AND excluded.unprocessable`
)

// AcceptGap lets a version go on behind the offsets of a fault: those that the log no longer holds, or what cannot be
// processed. The range must be that of the partition's fault, so that no other loss is accepted than the one that was
// shown; false says that it is another. A single record becomes a dead letter, everything else is noted as an accepted
// gap; both in tx, with the position.
func (Store) AcceptGap(ctx context.Context, tx *pg.Tx, ref job.Ref, topic string, partition int32, gap job.Range,
	by string,
) (bool, error) {
	args := refArgs(ref)
	args["topic"], args["partition"], args["from"], args["to"], args["by"] = topic, partition, gap.From, gap.To, by
	moved, err := pg.Structs[gapMoved](ctx, tx, sqlGapPosition, args)
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
	if m := moved[0]; gap.Len() == 1 && !m.Replayed && m.Fault != string(job.FaultGap) {
		return true, skip(ctx, tx, ref, args, m)
	}
	args["topic_id"], args["gap_from"], args["gap_to"], args["counted"] = moved[0].TopicID, gone.From, gone.To,
		moved[0].Counted
	args["fault"], args["unprocessable"] = moved[0].Fault,
		[]string{string(job.FaultTooLarge), string(job.FaultQuery), string(job.FaultRecord)}
	if _, err := tx.Exec(ctx, sqlGapNote, args); err != nil {
		return false, fmt.Errorf("note the gap %s/%d %s of %s: %w", topic, partition, gap, ref, err)
	}
	return true, nil
}

// gapMoved is one thing that was moved past a gap: a position, or a segment of a replay. Counted reports that what is
// gone had been counted.
type gapMoved struct {
	Replayed    bool
	TopicID     string
	Counted     bool
	Fault       string
	FaultDetail string
}

// reasonSkipped is the reason of a dead letter that a person made of a record that stopped its partition.
const reasonSkipped = "skipped"

const sqlSkipped = `
WITH letter AS (
     INSERT INTO kappactl.dead_letter (job, number, topic_id, topic, partition, "offset", reason, detail, size)
     VALUES (@job, @number, @topic_id::uuid, @topic, @partition, @from, @reason, @detail, -1)
     ON CONFLICT DO NOTHING)
UPDATE kappactl.position SET records = records + 1, dead_letters = dead_letters + 1
 WHERE job = @job AND number = @number AND topic_id = @topic_id::uuid AND partition = @partition`

// skip writes the record that a position was moved behind as a dead letter. Its key and value are not at hand; the log
// has them.
func skip(ctx context.Context, tx *pg.Tx, ref job.Ref, args pgx.NamedArgs, m gapMoved) error {
	args["topic_id"], args["reason"], args["detail"] = m.TopicID, reasonSkipped, m.FaultDetail
	if _, err := tx.Exec(ctx, sqlSkipped, args); err != nil {
		return fmt.Errorf("write the skipped record of %s: %w", ref, err)
	}
	return nil
}

type gapSegment struct {
	ID         int64
	TopicID    string
	GoneFrom   int64
	GoneTo     int64
	FromOffset int64
	ToOffset   int64
	Fault      string
}

// acceptInReplay leaves out of a replay what is gone; the segment had landed nothing. Where retention took the log's
// start, that is all of the segment below the gap's end, and the rest follows it; where the log's end was cut off, the
// rest lies before it; around what cannot be processed there is a rest on both sides.
func acceptInReplay(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs, gap job.Range) (moved []gapMoved,
	gone job.Range, err error,
) {
	found, err := pg.Structs[gapSegment](ctx, tx, sqlGapSegment, args)
	if err != nil || len(found) == 0 {
		return nil, gap, err
	}
	g := found[0]
	before, rest := job.Range{From: g.FromOffset, To: g.GoneFrom}, job.Range{From: g.GoneTo, To: g.ToOffset}
	var steps []string
	switch {
	case before.Len() == 0 && rest.Len() == 0:
		steps = []string{sqlGapTile, sqlGapGone}
	case rest.Len() == 0:
		rest = before
		steps = []string{sqlGapTile, sqlGapRest}
	case before.Len() == 0:
		steps = []string{sqlGapTile, sqlGapRest}
	default:
		steps = []string{sqlGapBefore, sqlGapTile, sqlGapRest}
	}
	args["id"], args["gone_from"], args["gone_to"], args["rest_from"], args["rest_to"] = g.ID, g.GoneFrom, g.GoneTo,
		rest.From, rest.To
	for _, sql := range steps {
		if _, err := tx.Exec(ctx, sql, args); err != nil {
			return nil, gap, err
		}
	}
	return []gapMoved{{TopicID: g.TopicID, Replayed: true, Fault: g.Fault}}, job.Range{From: g.GoneFrom, To: g.GoneTo}, nil
}

const (
	sqlRetryPositions = `
WITH found AS (
     SELECT topic_id, partition FROM kappactl.position
      WHERE job = @job AND number = @number AND fault <> '' ORDER BY topic_id, partition FOR UPDATE)
UPDATE kappactl.position AS p
   SET fault = '', fault_detail = '', fault_from = NULL, fault_to = NULL
  FROM found
 WHERE p.job = @job AND p.number = @number AND p.topic_id = found.topic_id AND p.partition = found.partition
RETURNING p.topic, p.partition`
	sqlRetrySegments = `
UPDATE kappactl.segment
   SET state = 'open', fault = '', error = '', fault_from = NULL, fault_to = NULL, attempts = 0
 WHERE job = @job AND number = @number AND state = 'failed'
RETURNING topic, partition`
)

// Retry clears the faults of a version, whatever they are, so that what they stopped is tried again: at once, or as
// soon as an agent works on the version. It returns the partitions, in order.
func (Store) Retry(ctx context.Context, tx *pg.Tx, ref job.Ref) ([]string, error) {
	type place struct {
		Topic     string
		Partition int32
	}
	var out []string
	for _, sql := range []string{sqlRetryPositions, sqlRetrySegments} {
		found, err := pg.Structs[place](ctx, tx, sql, refArgs(ref))
		if err != nil {
			return nil, fmt.Errorf("clear the faults of %s: %w", ref, err)
		}
		for _, p := range found {
			out = append(out, job.Partition{Topic: p.Topic, ID: p.Partition}.String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
