package speedlayer

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Store is the SQL over the tables that speedlayer writes. It holds nothing; its methods take the transaction or pool
// to work in. It satisfies reprocess.Replays and reprocess.Positions.
type Store struct{}

const sqlPositions = sqlPositionRows + `
 WHERE p.job = @job AND p.number = @number
 ORDER BY p.topic, p.partition, p.topic_id`

const sqlPositionRows = `
SELECT p.job, p.number, p.topic_id::text AS topic_id, p.topic, p.partition,
       CASE WHEN p.next < p.frozen_end AND s.cut THEN coalesce(s.open_from, p.frozen_end) ELSE p.next END AS next,
       CASE WHEN p.next >= p.frozen_end THEN 0 WHEN s.cut THEN coalesce(s.remaining, 0) ELSE p.frozen_end - p.next END AS remaining, p.covers_from, p.frozen_end, p.leader_epoch,
       greatest(p.record_time, s.record_time) AS record_time,
       p.records + coalesce(s.records, 0) AS records,
       p.dead_letters + coalesce(s.dead_letters, 0) AS dead_letters,
       coalesce(p.owner, '') AS owner,
       CASE WHEN p.fault <> '' THEN p.fault ELSE coalesce(f.fault, '') END AS fault,
       CASE WHEN p.fault <> '' THEN p.fault_detail ELSE coalesce(f.error, '') END AS fault_detail,
       coalesce(CASE WHEN p.fault <> '' THEN p.fault_from ELSE f.fault_from END, 0) AS fault_from,
       coalesce(CASE WHEN p.fault <> '' THEN p.fault_to ELSE f.fault_to END, 0) AS fault_to,
       ` + positionHash + ` AS hash
  FROM kappactl.position p
  LEFT JOIN LATERAL (
       SELECT count(*) > 0 AS cut, min(g.from_offset) FILTER (WHERE g.state <> 'done') AS open_from,
              (sum(g.to_offset - CASE WHEN g.state = 'claimed' THEN least(coalesce(g.reached, g.from_offset), g.to_offset - 1) ELSE g.from_offset END)
                  FILTER (WHERE g.state <> 'done'))::bigint AS remaining,
              max(g.record_time) AS record_time, sum(g.records)::bigint AS records, sum(g.dead_letters)::bigint AS dead_letters
         FROM kappactl.segment g
        WHERE g.job = p.job AND g.number = p.number AND g.topic_id = p.topic_id AND g.partition = p.partition
       ) s ON p.next < p.frozen_end
  LEFT JOIN LATERAL (
       SELECT g.fault, g.error, g.fault_from, g.fault_to
         FROM kappactl.segment g
        WHERE g.job = p.job AND g.number = p.number AND g.topic_id = p.topic_id AND g.partition = p.partition AND g.fault <> ''
        ORDER BY g.from_offset LIMIT 1
       ) f ON p.next < p.frozen_end`

type positionRow struct {
	Job         string
	Number      int
	TopicID     string
	Topic       string
	Partition   int32
	Next        int64
	Remaining   int64
	CoversFrom  int64
	FrozenEnd   int64
	LeaderEpoch int32
	RecordTime  *time.Time
	Records     int64
	DeadLetters int64
	Owner       string
	Fault       string
	FaultDetail string
	FaultFrom   int64
	FaultTo     int64
	Hash        int64
}

func (r positionRow) position() (job.Position, error) {
	id, err := job.ParseTopicID(r.TopicID)
	if err != nil {
		return job.Position{}, err
	}
	return job.Position{
		Partition: job.Partition{Topic: r.Topic, TopicID: id, ID: r.Partition},
		Next:      r.Next, Remaining: r.Remaining, CoversFrom: r.CoversFrom, FrozenEnd: r.FrozenEnd,
		LeaderEpoch: r.LeaderEpoch, RecordTime: r.RecordTime, Records: r.Records, DeadLetters: r.DeadLetters, Owner: r.Owner,
		Fault: job.Fault{Kind: job.FaultKind(r.Fault), Detail: r.FaultDetail, From: r.FaultFrom, To: r.FaultTo},
	}, nil
}

// Positions lists the partitions of a version by topic and number. While segments are open Next is the end of the
// contiguous done ones and Remaining the offsets that no done segment covers, less what running ones
// have read; it is above 0 while one is not done. Records and dead letters are those of the
// replay and of live together.
func (Store) Positions(ctx context.Context, db pg.DB, ref job.Ref) ([]job.Position, error) {
	rows, err := db.Query(ctx, sqlPositions, refArgs(ref))
	if err != nil {
		return nil, fmt.Errorf("read positions of %s: %w", ref, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[positionRow])
	if err != nil {
		return nil, fmt.Errorf("read positions of %s: %w", ref, err)
	}
	out := make([]job.Position, len(found))
	for i, r := range found {
		if out[i], err = r.position(); err != nil {
			return nil, fmt.Errorf("read positions of %s: %w", ref, err)
		}
	}
	return out, nil
}

const sqlRemove = `
WITH positions AS (DELETE FROM kappactl.position WHERE job = @job AND number = @number),
     builds AS (DELETE FROM kappactl.batch_segment WHERE job = @job AND number = @number)
DELETE FROM kappactl.segment WHERE job = @job AND number = @number`

// lettersStay is how long the dead letters of a version stay after its end: they are needed to find out why it failed.
const lettersStay = "7 days"

const sqlOldLetters = `
DELETE FROM kappactl.dead_letter d USING kappactl.version v
 WHERE v.job = d.job AND v.number = d.number AND v.ended_at < clock_timestamp() - @stay::interval`

// sqlBuilds are the generations of a version whose staging tables may be there.
const sqlBuilds = `
SELECT generation FROM kappactl.generation WHERE job = @job AND number = @number AND generation > 0 AND dropped_at IS NULL ORDER BY 1`

// Remove deletes the positions, segments and staging tables of a version, and keeps its accepted gaps, and its dead
// letters for lettersStay. Those of versions that ended earlier are deleted. A commit in flight is waited for; a worker
// that comes later finds that its claims are gone.
func (Store) Remove(ctx context.Context, tx *pg.Tx, v job.Version) error {
	if err := lockPositions(ctx, tx, v.Ref); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlRemove, refArgs(v.Ref)); err != nil {
		return fmt.Errorf("remove positions of %s: %w", v.Ref, err)
	}
	if _, err := tx.Exec(pg.Long(ctx), sqlOldLetters, pgx.NamedArgs{"stay": lettersStay}); err != nil {
		return fmt.Errorf("remove the dead letters of versions that ended: %w", err)
	}
	builds, err := pg.Collect(ctx, tx, pgx.RowTo[int], sqlBuilds, refArgs(v.Ref))
	if err != nil {
		return fmt.Errorf("list the generations of %s: %w", v.Ref, err)
	}
	for _, generation := range append(builds, 0) {
		if err := dropStaging(ctx, tx, v, target{v.Ref, generation}); err != nil {
			return err
		}
	}
	return nil
}

const sqlLockPositions = `
SELECT 1 FROM kappactl.position WHERE job = @job AND number = @number ORDER BY topic_id, partition FOR UPDATE`

// lockPositions takes a version's position rows in the order in which everybody takes them.
func lockPositions(ctx context.Context, db pg.DB, ref job.Ref) error {
	if _, err := db.Exec(ctx, sqlLockPositions, refArgs(ref)); err != nil {
		return fmt.Errorf("lock positions of %s: %w", ref, err)
	}
	return nil
}

const (
	// sqlLockVersion keeps a rotation off while positions are added. A dead letter's foreign key takes KEY SHARE, with
	// which FOR UPDATE would conflict: a commit that holds positions and writes one would meet a rotation crosswise.
	sqlLockVersion = `SELECT 1 FROM kappactl.version WHERE job = @job AND number = @number FOR NO KEY UPDATE`
	// newestEpoch is the epoch of a version's positions. It is read under sqlLockVersion, in a statement of its own.
	newestEpoch = `coalesce(
       (SELECT max(epoch) FROM kappactl.position WHERE job = @job AND number = @number),
       (SELECT max(generation) FROM kappactl.generation WHERE job = @job AND number = @number), 0)`
	sqlFollow = `
INSERT INTO kappactl.position (job, number, topic_id, topic, partition, next, covers_from, frozen_end, leader_epoch, epoch)
SELECT @job, @number, @topic_id::uuid, @topic, @partition, @from, @from, @from, @leader_epoch, ` + newestEpoch + `
ON CONFLICT DO NOTHING`
)

// lockVersion locks the row of a version for as long as tx lasts: whoever adds positions takes it first, as a rotation
// does.
func lockVersion(ctx context.Context, tx *pg.Tx, ref job.Ref) error {
	if _, err := tx.Exec(ctx, sqlLockVersion, refArgs(ref)); err != nil {
		return fmt.Errorf("lock %s: %w", ref, err)
	}
	return nil
}

// Follow gives a partition that appeared later a position at f.From, without segments. Repeatable.
func (Store) Follow(ctx context.Context, tx *pg.Tx, ref job.Ref, f job.Frozen) error {
	args := refArgs(ref)
	args["topic_id"], args["topic"], args["partition"] = f.TopicID.String(), f.Topic, f.ID
	args["from"], args["leader_epoch"] = f.From, f.LeaderEpoch
	if err := lockVersion(ctx, tx, ref); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlFollow, args); err != nil {
		return fmt.Errorf("follow %s for %s: %w", f.Partition, ref, err)
	}
	return nil
}

func refArgs(ref job.Ref) pgx.NamedArgs {
	return pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)}
}
