package speedlayer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const heldColumns = `topic_id::text AS topic_id, topic, partition, claim, next, leader_epoch, fault, ` + heldHash +
	` AS hash`

// leasedPosition is how positions are owned. A claim waits for a commit in flight and returns the true position.
var leasedPosition = pg.Leased{
	Table: "kappactl.position", Key: "job, number, topic_id, partition", Order: "topic_id, partition",
	Columns: heldColumns, Wait: true,
}

// heldPosition is a position row as its owner sees it.
type heldPosition struct {
	TopicID     string
	Topic       string
	Partition   int32
	Claim       int64
	Next        int64
	LeaderEpoch int32
	Fault       string
	Hash        int64
}

func (h heldPosition) partition() (job.Partition, error) {
	id, err := job.ParseTopicID(h.TopicID)
	return job.Partition{Topic: h.Topic, TopicID: id, ID: h.Partition}, err
}

const (
	whereVersion = `r.job = @job AND r.number = @number`
	notShunned   = ` AND (r.topic_id, r.partition) NOT IN (SELECT * FROM unnest(@shunned_ids::uuid[], @shunned::integer[]))`
	whereListed  = whereVersion +
		` AND (r.topic_id, r.partition) IN (SELECT * FROM unnest(@topic_ids::uuid[], @partitions::integer[]))`
	whereClaims = whereVersion +
		` AND (r.topic_id, r.partition, r.claim) IN (SELECT * FROM unnest(@topic_ids::uuid[], @partitions::integer[], @claims::bigint[]))`
	sqlLockListed = `
SELECT topic_id::text AS topic_id, topic, partition, claim, next, fault, epoch,
       CASE WHEN hold_until > clock_timestamp() THEN hold END AS hold
  FROM kappactl.position AS r WHERE ` + whereListed + ` ORDER BY topic_id, partition FOR UPDATE`
	sqlHolds = `
SELECT topic_id::text AS topic_id, topic, partition, claim, next, fault, epoch,
       CASE WHEN hold_until > clock_timestamp() THEN hold END AS hold
  FROM kappactl.position AS r WHERE ` + whereListed
	// sqlHeld reads the held partitions without a lock; due is true when the lease has to be renewed.
	sqlHeld = `
SELECT ` + heldColumns + `, lease < clock_timestamp() + @fresh::interval AS due
  FROM kappactl.position AS r WHERE r.owner = @owner AND ` + whereClaims + ` ORDER BY topic_id, partition`
	sqlShares = `
SELECT count(*) AS total, count(*) FILTER (WHERE (r.owner IS NULL OR r.lease < clock_timestamp())` + notShunned + `) AS free
  FROM kappactl.position AS r WHERE ` + whereVersion
	sqlMove = `
UPDATE kappactl.position AS p
   SET next = b.to_offset, leader_epoch = b.leader_epoch, record_time = greatest(p.record_time, b.record_time),
       records = p.records + b.records, dead_letters = p.dead_letters + b.dead_letters,
       lease = CASE WHEN p.owner = @owner THEN clock_timestamp() + @lease::interval ELSE p.lease END
  FROM unnest(@topic_ids::uuid[], @partitions::integer[], @claims::bigint[], @froms::bigint[], @tos::bigint[],
              @epochs::integer[], @times::timestamptz[], @records::bigint[], @letters::bigint[])
       AS b (topic_id, partition, claim, from_offset, to_offset, leader_epoch, record_time, records, dead_letters)
 WHERE p.job = @job AND p.number = @number AND p.topic_id = b.topic_id AND p.partition = b.partition
   AND p.claim = b.claim AND p.next = b.from_offset AND p.fault = ''
   AND (p.hold IS NULL OR p.hold_until <= clock_timestamp() OR b.to_offset <= p.hold)`
	sqlFault = `
UPDATE kappactl.position
   SET fault = @fault, fault_detail = @detail, fault_from = @fault_from, fault_to = @fault_to
 WHERE job = @job AND number = @number AND topic_id = @topic_id::uuid AND partition = @partition
   AND claim = @claim AND next = @next AND fault = ''`
)

// claims are the positions that a run holds, by partition.
type claims map[job.Partition]int64

func (c claims) args(ref job.Ref) pgx.NamedArgs {
	var ids []string
	var partitions []int32
	var numbers []int64
	for p, claim := range c {
		ids, partitions, numbers = append(ids, p.TopicID.String()), append(partitions, p.ID), append(numbers, claim)
	}
	args := refArgs(ref)
	args["topic_ids"], args["partitions"], args["claims"] = ids, partitions, numbers
	return args
}

// claimPositions takes up to n positions of the version that have no owner and that args do not exclude.
func (r *run) claimPositions(ctx context.Context, n int, args pgx.NamedArgs) ([]heldPosition, error) {
	return pg.Claim[heldPosition](ctx, r.Pool, leasedPosition, r.Agent, r.config.Lease, n, whereVersion+notShunned, args)
}

// reclaim gives up what is held and claims it again, which waits for a commit of ours that may still be in flight. What
// is missing in the answer was lost. Any claim of ours in those rows is given up: an earlier reclaim may have
// happened without our knowing.
func (r *run) reclaim(ctx context.Context, held claims) (got []heldPosition, err error) {
	args := held.args(r.ref)
	err = r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := r.lockListed(ctx, tx, args); err != nil {
			return err
		}
		if err := pg.Release(ctx, tx, leasedPosition, r.Agent, whereListed, args); err != nil {
			return err
		}
		got, err = pg.Claim[heldPosition](ctx, tx, leasedPosition, r.Agent, r.config.Lease, len(held), whereListed, args)
		return err
	})
	return got, err
}

// renewPositions returns what is held, and prolongs the leases that a third of their time has passed of: commits
// prolong them as well, and a thousand idle partitions are not written twice a second.
func (r *run) renewPositions(ctx context.Context, held claims) (got []heldPosition, err error) {
	args := held.args(r.ref)
	args["owner"], args["fresh"] = r.Agent, pg.Interval(r.fresh())
	type standing struct {
		heldPosition
		Due bool
	}
	found, err := pg.Structs[standing](ctx, r.Pool, sqlHeld, args)
	if err != nil {
		return nil, err
	}
	due := claims{}
	for _, s := range found {
		if !s.Due {
			got = append(got, s.heldPosition)
			continue
		}
		p, err := s.partition()
		if err != nil {
			return nil, err
		}
		due[p] = s.Claim
	}
	if len(due) == 0 {
		return got, nil
	}
	renewed, err := r.prolong(ctx, due)
	return append(got, renewed...), err
}

func (r *run) prolong(ctx context.Context, due claims) (got []heldPosition, err error) {
	args := due.args(r.ref)
	err = r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := r.lockListed(ctx, tx, args); err != nil {
			return err
		}
		got, err = pg.Renew[heldPosition](ctx, tx, leasedPosition, r.Agent, r.config.Lease, whereClaims, args)
		return err
	})
	return got, err
}

// lockListed takes the rows in the order in which everybody takes them.
func (r *run) lockListed(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs) error {
	_, err := tx.Exec(ctx, sqlLockListed, args)
	return err
}

func (r *run) releasePositions(ctx context.Context, held claims) error {
	if len(held) == 0 {
		return nil
	}
	args := held.args(r.ref)
	return r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := r.lockListed(ctx, tx, args); err != nil {
			return err
		}
		return pg.Release(ctx, tx, leasedPosition, r.Agent, whereClaims, args)
	})
}

// readRows reads rows of positions by partition.
func (r *run) readRows(ctx context.Context, db pg.DB, sql string, args pgx.NamedArgs) (map[job.Partition]*lockedRow,
	error,
) {
	type row struct {
		TopicID   string
		Topic     string
		Partition int32
		lockedRow
	}
	rows, err := db.Query(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	out := map[job.Partition]*lockedRow{}
	var one row
	_, err = pgx.ForEachRow(rows, []any{
		&one.TopicID, &one.Topic, &one.Partition, &one.Claim, &one.Next, &one.Fault,
		&one.Epoch, &one.Hold,
	}, func() error {
		id, err := job.ParseTopicID(one.TopicID)
		found := one.lockedRow
		out[job.Partition{Topic: one.Topic, TopicID: id, ID: one.Partition}] = &found
		return err
	})
	return out, err
}

// batch holds the writes of one live transaction.
type batch struct {
	parts   []part
	rows    *table
	letters []letter
}

// staleError is a batch that does not fit the position rows; nothing of it was written.
type staleError struct {
	rows map[job.Partition]*lockedRow
}

func (e *staleError) Error() string { return "the positions are not where the batch expects them" }

// commit writes a batch and moves the positions over it, in one transaction. It goes on when ctx is done.
func (r *run) commit(ctx context.Context, b batch) error {
	ctx, cancel := r.finishing(ctx)
	defer cancel()
	err := r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := setTimeouts(ctx, tx, r.config.Timeout, r.idle()); err != nil {
			return err
		}
		r.hit(faultpoint.LiveBegin)
		epoch, err := r.move(ctx, tx, b)
		if err != nil {
			return err
		}
		r.hit(faultpoint.LivePositions)
		if err := r.larder.strip(ctx, tx, r.ref, b.letters); err != nil {
			return err
		}
		if err := writeLetters(ctx, tx, r.ref, b.letters); err != nil {
			return err
		}
		if b.rows.rows > 0 {
			if err := r.merge(ctx, tx, b.rows, epoch); err != nil {
				return err
			}
		}
		r.hit(faultpoint.LiveUpserted)
		r.hit(faultpoint.LiveBeforeCommit)
		return nil
	})
	if err != nil {
		return fmt.Errorf("commit %d records of %s: %w", countRecords(b.parts), r.ref, err)
	}
	return nil
}

// move locks the position rows, checks every part against its row and moves them all, or none. It returns the epoch of
// the rows, which is that of what the batch writes.
func (r *run) move(ctx context.Context, tx *pg.Tx, b batch) (epoch int, err error) {
	args := moveArgs(r.ref, b.parts)
	rows, err := r.readRows(ctx, tx, sqlLockListed, args)
	if err != nil {
		return 0, fmt.Errorf("lock positions: %w", err)
	}
	for _, p := range b.parts {
		if judge(p, rows[p.partition]) != fits {
			return 0, &staleError{rows}
		}
	}
	if epoch, err = commonEpoch(rows); err != nil {
		return 0, err
	}
	args["owner"], args["lease"] = r.Agent, pg.Interval(r.config.Lease)
	tag, err := tx.Exec(ctx, sqlMove, args)
	if err != nil {
		return 0, fmt.Errorf("move positions: %w", err)
	}
	if tag.RowsAffected() != int64(len(b.parts)) {
		return 0, &staleError{rows}
	}
	return epoch, nil
}

// commonEpoch is the epoch that locked position rows of a version share.
func commonEpoch(rows map[job.Partition]*lockedRow) (int, error) {
	epochs := map[int]bool{}
	for _, row := range rows {
		epochs[row.Epoch] = true
	}
	if len(epochs) > 1 {
		return 0, &epochsError{slices.Sorted(maps.Keys(epochs))}
	}
	for epoch := range epochs {
		return epoch, nil
	}
	return 0, nil
}

// epochsError is positions of one version that have several epochs: no rows can be written for them all.
type epochsError struct{ epochs []int }

func (e *epochsError) Error() string {
	return fmt.Sprintf("the positions have several epochs: %v", e.epochs)
}

func moveArgs(ref job.Ref, parts []part) pgx.NamedArgs {
	var (
		ids                    []string
		partitions, epochs     []int32
		numbers, froms, tos    []int64
		times                  []*time.Time
		recordCounts, letterNs []int64
	)
	for _, p := range parts {
		ids, partitions, epochs = append(ids, p.partition.TopicID.String()), append(partitions, p.partition.ID),
			append(epochs, p.epoch)
		numbers, froms, tos = append(numbers, p.claim), append(froms, p.from), append(tos, p.to)
		times = append(times, p.newestTime())
		recordCounts, letterNs = append(recordCounts, int64(len(p.records))), append(letterNs, int64(p.letters))
	}
	args := refArgs(ref)
	args["topic_ids"], args["partitions"], args["claims"], args["epochs"] = ids, partitions, numbers, epochs
	args["froms"], args["tos"], args["times"], args["records"], args["letters"] = froms, tos, times, recordCounts, letterNs
	return args
}

// merge is the last statement of the transaction: it holds the row locks that readers of the same keys wait for least.
func (r *run) merge(ctx context.Context, tx *pg.Tx, t *table, epoch int) error {
	args := make([]any, len(t.columns), len(t.columns)+1)
	for i, c := range t.columns {
		args[i] = c
	}
	if r.layout.Lambda {
		args = append(args, epoch)
	}
	tag, err := tx.Raw().Exec(ctx, r.upsert, args...)
	if err != nil {
		return &mergeError{t.rows, err}
	}
	if lost := t.lost(r.layout, tag.RowsAffected()); lost > 0 {
		return &mergeError{t.rows, &swallowedError{
			lost,
			pg.Ident(r.schema, job.Version{Ref: r.ref, Schema: r.schema, Layout: r.layout}.Table()),
		}}
	}
	return nil
}

// mergeError is a merge that failed. When the connection is lost in it, its rows may have taken longer to send than a
// transaction may stand idle.
type mergeError struct {
	rows int
	err  error
}

func (e *mergeError) Error() string { return fmt.Sprintf("merge %d rows: %v", e.rows, e.err) }
func (e *mergeError) Unwrap() error { return e.err }

// writeFault writes a fault beside a position, if the claim is still held and the position has not moved. done is true
// when the fault was written.
func (r *run) writeFault(ctx context.Context, o *owned) (done bool, err error) {
	args := refArgs(r.ref)
	args["topic_id"], args["partition"], args["claim"], args["next"] = o.partition.TopicID.String(), o.partition.ID,
		o.claim, o.next
	args["fault"], args["detail"], args["fault_from"], args["fault_to"] = string(o.fault.Kind), printable(o.fault.Detail),
		o.fault.From, o.fault.To
	tag, err := r.Pool.Exec(ctx, sqlFault, args)
	if err != nil {
		return false, fmt.Errorf("write the fault of %s of %s: %w", o.partition, r.ref, err)
	}
	return tag.RowsAffected() > 0, nil
}
