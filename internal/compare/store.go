package compare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// prefix is how the names of all schemas of comparisons begin.
const prefix = "kappactl_compare_"

const sqlLeftovers = `
SELECT n.nspname FROM pg_namespace n
 WHERE starts_with(n.nspname, @prefix)
   AND NOT EXISTS (SELECT FROM pg_stat_activity a
                    WHERE starts_with(a.application_name, @prefix) AND starts_with(n.nspname, a.application_name))
 ORDER BY 1`

// Leftovers returns the schemas of comparisons that are not running: one that was killed cannot drop its schemas.
func Leftovers(ctx context.Context, db pg.DB) ([]string, error) {
	names, err := pg.Collect(ctx, db, pgx.RowTo[string], sqlLeftovers, pgx.NamedArgs{"prefix": prefix})
	if err != nil {
		return nil, fmt.Errorf("look for schemas of comparisons: %w", err)
	}
	return names, nil
}

// rig is the database of one measurement.
type rig struct {
	pool  *pg.Pool
	views string // schema of the view and of the tables
}

const pause = 50 * time.Millisecond

// agentAddress waits until the agent of a process is there and returns where it answers. Those that ran before it may
// be listed still.
func (r rig) agentAddress(ctx context.Context, pid int) (string, error) {
	for {
		var address string
		err := r.pool.QueryRow(ctx,
			`SELECT http FROM kappactl.agent WHERE http <> '' AND pid = $1 ORDER BY started_at DESC LIMIT 1`, pid).Scan(&address)
		if err == nil || !errors.Is(err, pgx.ErrNoRows) {
			return address, err
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// wal is how many bytes of WAL the server has written since an arbitrary moment.
func (r rig) wal(ctx context.Context) (n int64, err error) {
	err = r.pool.QueryRow(ctx, `SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint`).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("read the position of the WAL: %w", err)
	}
	return n, nil
}

// sizes are the bytes of the tables, with indexes: of batch generations and of all others.
func (r rig) sizes(ctx context.Context) (table, batch int64, err error) {
	err = r.pool.QueryRow(ctx, `
SELECT coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE NOT c.relispartition), 0)::bigint,
       coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relispartition), 0)::bigint
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`, r.views).Scan(&table, &batch)
	if err != nil {
		return 0, 0, fmt.Errorf("read the sizes of the tables: %w", err)
	}
	return table, batch, nil
}

// positions are the committed positions of the job's live version.
func (r rig) positions(ctx context.Context, name job.Name) (map[job.Partition]int64, error) {
	type row struct {
		Topic     string
		TopicID   string
		Partition int32
		Next      int64
	}
	found, err := pg.Structs[row](ctx, r.pool, `SELECT p.topic, p.topic_id::text AS topic_id, p.partition, p.next
		FROM kappactl.position p JOIN kappactl.job j ON j.name = p.job AND j.live = p.number WHERE p.job = @job`, pgx.NamedArgs{"job": string(name)})
	if err != nil {
		return nil, fmt.Errorf("read positions: %w", err)
	}
	out := map[job.Partition]int64{}
	for _, p := range found {
		id, err := job.ParseTopicID(p.TopicID)
		if err != nil {
			return nil, err
		}
		out[job.Partition{Topic: p.Topic, TopicID: id, ID: p.Partition}] = p.Next
	}
	return out, nil
}

// drop removes all that a measurement has made in the database.
func (r rig) drop(ctx context.Context) error {
	var errs error
	for _, schema := range []string{r.views, r.pool.Schema()} {
		_, err := r.pool.Exec(pg.Long(ctx), "DROP SCHEMA IF EXISTS "+pg.Ident(schema)+" CASCADE")
		errs = errors.Join(errs, err)
	}
	if errs != nil {
		return fmt.Errorf("drop the schemas of a measurement: %w", errs)
	}
	return nil
}
