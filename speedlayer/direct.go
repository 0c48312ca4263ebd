package speedlayer

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// Direct is the positions of versions whose work writes their table itself, from the first record on: there are no
// segments, no staging table and nothing to fill. Such a version's replay is over when its positions have passed the
// frozen ends.
type Direct struct{}

// Freeze writes the position rows. A partition that has one is left alone.
func (Direct) Freeze(ctx context.Context, tx *pg.Tx, v job.Version, frozen []job.Frozen) error {
	if err := lockVersion(ctx, tx, v.Ref); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlFreeze, target{ref: v.Ref}.frozenArgs(frozen)); err != nil {
		return fmt.Errorf("freeze %s: %w", v.Ref, err)
	}
	return nil
}

const sqlExtendDirect = `
UPDATE kappactl.position AS p SET frozen_end = greatest(p.frozen_end, f.to_offset)
  FROM unnest(@topic_ids::uuid[], @partitions::integer[], @tos::bigint[]) AS f (topic_id, partition, to_offset)
 WHERE p.job = @job AND p.number = @number AND p.topic_id = f.topic_id AND p.partition = f.partition`

// Extend moves the frozen ends to the given To. A partition that has no position yet gets one over its whole range.
func (d Direct) Extend(ctx context.Context, tx *pg.Tx, ref job.Ref, frozen []job.Frozen) error {
	if err := d.Freeze(ctx, tx, job.Version{Ref: ref}, frozen); err != nil {
		return err
	}
	if err := lockPositions(ctx, tx, ref); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlExtendDirect, target{ref: ref}.frozenArgs(frozen)); err != nil {
		return fmt.Errorf("extend %s: %w", ref, err)
	}
	return nil
}

// Before is 0: such a replay takes no place in the budget of replays.
func (Direct) Before(context.Context, pg.DB, job.Ref) (int, error) { return 0, nil }

// Deadlines does nothing: the work decides in which order it reads.
func (Direct) Deadlines(context.Context, pg.DB, job.Ref, func(job.Partition, int64) *time.Time) error {
	return nil
}

// Fill does nothing: the table holds what the positions have passed.
func (Direct) Fill(context.Context, *pg.Pool, job.Version) error { return nil }

// Moved counts nothing: the work decides which record of a key is the latest.
func (Direct) Moved(context.Context, *pg.Pool, job.Version) (int64, bool, error) { return 0, true, nil }

// Seal checks that every position has passed its frozen end.
func (Direct) Seal(ctx context.Context, tx *pg.Tx, v job.Version) error {
	if err := lockPositions(ctx, tx, v.Ref); err != nil {
		return err
	}
	var left int
	if err := tx.QueryRow(ctx, sqlUnsealed, refArgs(v.Ref)).Scan(&left); err != nil {
		return fmt.Errorf("seal %s: %w", v.Ref, err)
	}
	if left > 0 {
		return &IncompleteError{Ref: v.Ref, Detail: []string{fmt.Sprintf("%d partitions are not read to their end", left)}}
	}
	return nil
}

// Expire does nothing: the work deletes the rows that it no longer keeps.
func (Direct) Expire(context.Context, *pg.Pool, job.Version) (int64, error) { return 0, nil }

// Remove deletes the positions of a version. A commit in flight is waited for; one that comes later is fenced.
func (Direct) Remove(ctx context.Context, tx *pg.Tx, v job.Version) error {
	return Store{}.Remove(ctx, tx, v)
}

const (
	// sqlNextClaim is above every claim of the version that was ever given. It is read under the lock of the version's
	// row.
	sqlNextClaim = `SELECT coalesce(max(claim), 0) + 1 FROM kappactl.position WHERE job = @job AND number = @number`
	sqlOwn       = `
UPDATE kappactl.position SET claim = @claim, owner = @owner, lease = clock_timestamp() + @lease::interval
 WHERE job = @job AND number = @number AND partition % @of = @share
RETURNING topic_id::text AS topic_id, topic, partition, next, frozen_end, fault`
	sqlKeepOwn = `
UPDATE kappactl.position SET lease = clock_timestamp() + @lease::interval
 WHERE job = @job AND number = @number AND claim = @claim AND owner = @owner`
	sqlFreeOwn = `
UPDATE kappactl.position SET owner = NULL, lease = NULL WHERE job = @job AND number = @number AND claim = @claim AND owner = @owner`
	sqlFaultOwn = `
UPDATE kappactl.position SET fault = @fault, fault_detail = @detail, fault_from = @from, fault_to = @to
 WHERE job = @job AND number = @number AND claim = @claim AND owner = @owner AND fault IN ('', @program)
   AND (@topic = '' OR topic = @topic AND partition = @partition)`
	sqlMoveOwn = `
UPDATE kappactl.position AS p SET next = f.next, records = p.records + f.next - p.next
  FROM unnest(@topics::text[], @partitions::integer[], @nexts::bigint[]) AS f (topic, partition, next)
 WHERE p.job = @job AND p.number = @number AND p.claim = @claim AND p.owner = @owner
   AND p.topic = f.topic AND p.partition = f.partition AND f.next > p.next AND p.fault IN ('', @program)`
)

// Take gives owner one share of a version's positions under a claim that fences every earlier owner of them: the
// partitions whose number leaves share when divided by of. It waits for commits in flight, so the positions returned
// are final.
func (Direct) Take(ctx context.Context, pool *pg.Pool, ref job.Ref, owner string, lease time.Duration, share,
	of int,
) (claim int64, owned []job.Owned, err error) {
	args := refArgs(ref)
	args["owner"], args["lease"], args["share"], args["of"] = owner, pg.Interval(lease), share, of
	err = pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := lockVersion(ctx, tx, ref); err != nil {
			return err
		}
		if err := lockPositions(ctx, tx, ref); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, sqlNextClaim, args).Scan(&claim); err != nil {
			return err
		}
		args["claim"] = claim
		type row struct {
			TopicID   string
			Topic     string
			Partition int32
			Next      int64
			FrozenEnd int64
			Fault     string
		}
		rows, err := pg.Structs[row](ctx, tx, sqlOwn, args)
		if err != nil {
			return err
		}
		owned = owned[:0]
		for _, r := range rows {
			id, err := job.ParseTopicID(r.TopicID)
			if err != nil {
				return err
			}
			owned = append(owned, job.Owned{
				Partition: job.Partition{Topic: r.Topic, TopicID: id, ID: r.Partition},
				Next:      r.Next, FrozenEnd: r.FrozenEnd, Fault: job.FaultKind(r.Fault),
			})
		}
		return nil
	})
	if err != nil {
		return 0, nil, fmt.Errorf("take positions of %s: %w", ref, err)
	}
	return claim, owned, nil
}

// Keep prolongs the lease and returns how many positions the claim still holds.
func (Direct) Keep(ctx context.Context, db pg.DB, ref job.Ref, owner string, claim int64, lease time.Duration) (int,
	error,
) {
	args := ownArgs(ref, owner, claim)
	args["lease"] = pg.Interval(lease)
	tag, err := db.Exec(ctx, sqlKeepOwn, args)
	if err != nil {
		return 0, fmt.Errorf("keep positions of %s: %w", ref, err)
	}
	return int(tag.RowsAffected()), nil
}

// Free gives up what a claim holds.
func (Direct) Free(ctx context.Context, db pg.DB, ref job.Ref, owner string, claim int64) error {
	if _, err := db.Exec(ctx, sqlFreeOwn, ownArgs(ref, owner, claim)); err != nil {
		return fmt.Errorf("release positions of %s: %w", ref, err)
	}
	return nil
}

// Fault notes a fault on a partition that a claim holds, or with a zero partition on all of them; job.FaultNone clears
// a job.FaultProgram.
func (Direct) Fault(ctx context.Context, db pg.DB, ref job.Ref, owner string, claim int64, on job.Partition,
	f job.Fault,
) error {
	args := ownArgs(ref, owner, claim)
	args["topic"], args["partition"] = on.Topic, on.ID
	args["fault"], args["detail"], args["from"], args["to"] = string(f.Kind), printable(f.Detail), f.From, f.To
	args["program"] = string(job.FaultProgram)
	if _, err := db.Exec(ctx, sqlFaultOwn, args); err != nil {
		return fmt.Errorf("note the fault of %s: %w", ref, err)
	}
	return nil
}

// MoveTo moves positions of a claim forward, never back.
func (Direct) MoveTo(ctx context.Context, db pg.DB, ref job.Ref, owner string, claim int64,
	next map[job.Partition]int64,
) error {
	args := ownArgs(ref, owner, claim)
	var topics []string
	var partitions []int32
	var nexts []int64
	for p, n := range next {
		topics, partitions, nexts = append(topics, p.Topic), append(partitions, p.ID), append(nexts, n)
	}
	args["topics"], args["partitions"], args["nexts"], args["program"] = topics, partitions, nexts,
		string(job.FaultProgram)
	if _, err := db.Exec(ctx, sqlMoveOwn, args); err != nil {
		return fmt.Errorf("move positions of %s: %w", ref, err)
	}
	return nil
}

// Trouble notes beside a version that work on it fails on an agent; a zero reason takes the note back. Notes are
// current for a few seconds.
func (Direct) Trouble(ctx context.Context, db pg.DB, ref job.Ref, agent string, why reason.Reason) error {
	args, sql := refArgs(ref), sqlTroubleOver
	args["agent"] = agent
	if !why.IsZero() {
		args["trouble"], sql = why, sqlTrouble
	}
	if _, err := db.Exec(ctx, sql, args); err != nil {
		return fmt.Errorf("note what fails of %s: %w", ref, err)
	}
	return nil
}

func ownArgs(ref job.Ref, owner string, claim int64) pgx.NamedArgs {
	args := refArgs(ref)
	args["owner"], args["claim"] = owner, claim
	return args
}
