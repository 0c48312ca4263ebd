package speedlayer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const (
	sqlLockBoth = `
SELECT 1 FROM kappactl.position
 WHERE (job = @job_a AND number = @number_a) OR (job = @job_b AND number = @number_b)
 ORDER BY topic_id, partition, job, number FOR UPDATE`
	sqlHeldByOthers = `
SELECT job, number, hold_by, hold_until FROM kappactl.position
 WHERE ((job = @job_a AND number = @number_a) OR (job = @job_b AND number = @number_b))
   AND hold_by <> @by AND hold_until > clock_timestamp()
 ORDER BY hold_until DESC LIMIT 1`
	sqlHold = `
WITH theirs AS (
     SELECT * FROM kappactl.position WHERE (job = @job_a AND number = @number_a) OR (job = @job_b AND number = @number_b)),
     tops AS (
     SELECT topic_id, partition, max(next) AS top, count(*) > 1 AS common FROM theirs GROUP BY topic_id, partition)
UPDATE kappactl.position AS p
   SET hold = tops.top, hold_until = clock_timestamp() + @ttl::interval, hold_by = @by
  FROM tops
 WHERE ((p.job = @job_a AND p.number = @number_a) OR (p.job = @job_b AND p.number = @number_b))
   AND p.topic_id = tops.topic_id AND p.partition = tops.partition
   AND (tops.common OR NOT EXISTS (SELECT 1 FROM tops WHERE common))`
)

// Hold sets a barrier over two versions: on every partition that both read neither commits beyond the further of the
// two positions until it is released or ttl has passed. Two versions without a common partition are held where they
// stand. A barrier of somebody else that has not expired is a *HeldError; one of the same by is replaced.
func (Store) Hold(ctx context.Context, tx *pg.Tx, by string, ttl time.Duration, a, b job.Ref) error {
	args := pgx.NamedArgs{
		"job_a": string(a.Job), "number_a": int(a.Number), "job_b": string(b.Job), "number_b": int(b.Number),
	}
	if _, err := tx.Exec(ctx, sqlLockBoth, args); err != nil {
		return fmt.Errorf("hold %s and %s: %w", a, b, err)
	}
	args["by"] = by
	var other HeldError
	err := tx.QueryRow(ctx, sqlHeldByOthers, args).Scan((*string)(&other.Ref.Job), (*int)(&other.Ref.Number), &other.By,
		&other.Until)
	switch {
	case err == nil:
		return &other
	case !errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("hold %s and %s: %w", a, b, err)
	}
	args["ttl"] = pg.Interval(ttl)
	if _, err := tx.Exec(ctx, sqlHold, args); err != nil {
		return fmt.Errorf("hold %s and %s: %w", a, b, err)
	}
	return nil
}

const (
	sqlLockHeld = `
SELECT 1 FROM kappactl.position WHERE hold_by = @by ORDER BY topic_id, partition, job, number FOR UPDATE`
	sqlReached = `
SELECT coalesce(bool_and(next = hold AND hold_until > clock_timestamp()), false) FROM kappactl.position WHERE hold_by = @by`
)

// Reached reports whether every row that by holds has reached its hold and no hold of it has expired. With lock the
// rows stay locked until the transaction ends, so that the answer stays true.
func (Store) Reached(ctx context.Context, db pg.DB, by string, lock bool) (bool, error) {
	args := pgx.NamedArgs{"by": by}
	if lock {
		// Judged by a second statement: the clock is read after the locks were waited for.
		if _, err := db.Exec(ctx, sqlLockHeld, args); err != nil {
			return false, fmt.Errorf("lock the positions held by %s: %w", by, err)
		}
	}
	var reached bool
	if err := db.QueryRow(ctx, sqlReached, args).Scan(&reached); err != nil {
		return false, fmt.Errorf("read the positions held by %s: %w", by, err)
	}
	return reached, nil
}

const sqlRelease = `
WITH held AS (
     SELECT job, number, topic_id, partition FROM kappactl.position WHERE hold_by = @by
      ORDER BY topic_id, partition, job, number FOR UPDATE)
UPDATE kappactl.position AS p SET hold = NULL, hold_until = NULL, hold_by = NULL
  FROM held AS h
 WHERE p.job = h.job AND p.number = h.number AND p.topic_id = h.topic_id AND p.partition = h.partition AND p.hold_by = @by`

// Release ends the barrier of by. Repeatable.
func (Store) Release(ctx context.Context, db pg.DB, by string) error {
	if _, err := db.Exec(ctx, sqlRelease, pgx.NamedArgs{"by": by}); err != nil {
		return fmt.Errorf("release the positions held by %s: %w", by, err)
	}
	return nil
}
