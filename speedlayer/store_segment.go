package speedlayer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// segment is a claimed segment.
type segment struct {
	segmentClaim
	partition job.Partition
}

type segmentClaim struct {
	ID          int64
	Claim       int64
	TopicID     string
	Topic       string
	Partition   int32
	FromOffset  int64
	ToOffset    int64
	LeaderEpoch int32
	Attempts    int // before this one that no worker came to the end of
}

func (g segment) span() job.Range { return job.Range{From: g.FromOffset, To: g.ToOffset} }
func (g segment) length() int64   { return g.span().Len() }
func (g segment) middle() int64   { return g.FromOffset + g.length()/2 }

func (g segment) args() pgx.NamedArgs {
	return pgx.NamedArgs{"id": g.ID, "claim": g.Claim, "from": g.FromOffset, "to": g.ToOffset}
}

const (
	// sqlReplaying keeps the claims of one version in line when the number of its workers is bounded over all agents.
	sqlReplaying = `SELECT pg_advisory_xact_lock(hashtextextended('kappactl replay ' || @job::text || '/' || @number::text, 0))`
	whereOpen    = `{of} AND r.state IN ('open', 'claimed')`
	whereWorkers = ` AND @workers > (SELECT count(*) FROM {segment} AS o WHERE {of}
		AND o.state = 'claimed' AND o.owner IS NOT NULL AND o.lease >= clock_timestamp())`
	sqlClaimed    = `UPDATE {segment} SET state = 'claimed', attempts = attempts + 1, reached = NULL WHERE id = @id AND claim = @claim`
	sqlSegmentEnd = `
UPDATE {segment}
   SET state = 'done', to_offset = @reached, rows = @rows, records = @records, bytes = @bytes, dead_letters = @dead_letters,
       record_time = @record_time, leader_epoch = @leader_epoch, timings = @timings::jsonb, done_at = clock_timestamp(),
       owner = NULL, lease = NULL, error = ''
 WHERE id = @id AND claim = @claim AND state = 'claimed'`
	sqlSegmentRest = `
INSERT INTO {segment} (job, number{, generation}, topic_id, topic, partition, from_offset, to_offset, deadline, leader_epoch)
SELECT job, number{, generation}, topic_id, topic, partition, @reached, @to, deadline, leader_epoch
  FROM {segment} WHERE id = @id`
	sqlSegmentCut = `
UPDATE {segment} SET state = 'open', to_offset = @reached, owner = NULL, lease = NULL, attempts = 0
 WHERE id = @id AND claim = @claim AND state = 'claimed'`
	sqlSegmentRelease = `
UPDATE {segment} SET owner = NULL, lease = NULL, attempts = attempts - @uncounted::integer
 WHERE id = @id AND claim = @claim AND state = 'claimed'`
	// Who lost a segment and is alive was not ended by its records: that attempt does not count.
	sqlSegmentSurvived = `UPDATE {segment} SET attempts = greatest(0, attempts - 1) WHERE id = @id AND state = 'claimed'`
	sqlSegmentFault    = `
UPDATE {segment}
   SET state = 'failed', fault = @fault, error = @detail, fault_from = @fault_from, fault_to = @fault_to, owner = NULL, lease = NULL
 WHERE id = @id AND claim = @claim AND state = 'claimed'`
)

// claim takes one open segment, or returns nil when there is none to take.
func (w *worker) claim(ctx context.Context) (*segment, error) {
	args, where := w.target.args(), whereOpen
	if w.spec.Replay.Workers > 0 {
		args["workers"] = w.spec.Replay.Workers
		where += whereWorkers
	}
	var got []segmentClaim
	err := w.Pool.ReadCommitted(ctx, func(tx *pg.Tx) (err error) {
		if w.spec.Replay.Workers > 0 {
			if _, err := tx.Exec(ctx, sqlReplaying, refArgs(w.ref)); err != nil {
				return err
			}
		}
		got, err = pg.Claim[segmentClaim](ctx, tx, w.target.leased(), w.Agent, w.config.Lease, 1, w.target.sql(where), args)
		if err != nil || len(got) == 0 {
			return err
		}
		_, err = tx.Exec(ctx, w.target.sql(sqlClaimed), pgx.NamedArgs{"id": got[0].ID, "claim": got[0].Claim})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim a segment of %s: %w", w.ref, err)
	}
	if len(got) == 0 {
		return nil, nil
	}
	id, err := job.ParseTopicID(got[0].TopicID)
	if err != nil {
		return nil, fmt.Errorf("claim a segment of %s: %w", w.ref, err)
	}
	return &segment{got[0], job.Partition{Topic: got[0].Topic, TopicID: id, ID: got[0].Partition}}, nil
}

// fail writes a fault beside a segment and leaves it to the controller. A claim that was lost is somebody else's to
// judge.
func (w *worker) fail(ctx context.Context, g segment, f job.Fault) error {
	args := g.args()
	args["fault"], args["detail"], args["fault_from"], args["fault_to"] = string(f.Kind), f.Detail, f.From, f.To
	tag, err := w.Pool.Exec(ctx, w.target.sql(sqlSegmentFault), args)
	if err != nil {
		return fmt.Errorf("write the fault of segment %d: %w", g.ID, err)
	}
	if tag.RowsAffected() > 0 {
		w.Metrics.Faults.Add(1)
		w.log.Error("a segment cannot be replayed", "segment", g.ID, "fault", f.Kind, "detail", f.Detail)
	}
	return nil
}

// release gives a segment back as it is. The attempt does not count when uncounted: what ended it was no fault of the
// segment's.
func (w *worker) release(ctx context.Context, g segment, uncounted bool) error {
	args := g.args()
	args["uncounted"] = map[bool]int{true: 1}[uncounted]
	if _, err := w.Pool.Exec(ctx, w.target.sql(sqlSegmentRelease), args); err != nil {
		return fmt.Errorf("release segment %d: %w", g.ID, err)
	}
	return nil
}

// split gives a segment back as two that meet at the given offset.
func (w *worker) split(ctx context.Context, g segment, at int64) error {
	args := g.args()
	args["reached"] = at
	err := w.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := changeOne(ctx, tx, w.target.sql(sqlSegmentCut), args); err != nil {
			return err
		}
		return changeOne(ctx, tx, w.target.sql(sqlSegmentRest), args)
	})
	if err != nil {
		return fmt.Errorf("split segment %d: %w", g.ID, err)
	}
	return nil
}

// changeOne runs a statement that must change one row; none means that the claim was lost.
func changeOne(ctx context.Context, tx *pg.Tx, sql string, args pgx.NamedArgs) error {
	tag, err := tx.Exec(ctx, sql, args)
	if err == nil && tag.RowsAffected() == 0 {
		return errFenced
	}
	return err
}
