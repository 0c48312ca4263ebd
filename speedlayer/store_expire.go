package speedlayer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const (
	expireRows    = 5_000 // that one transaction deletes
	expireBatches = 100   // of one call
)

// sqlExpiring notes up to when rows are deleted, unless the version keeps its rows otherwise by now.
const sqlExpiring = `
UPDATE kappactl.version SET expired_before = greatest(expired_before, clock_timestamp() - @keep::interval)
 WHERE job = @job AND number = @number AND layout #>> '{keep,for}' = @for`

// errNotKept is a layout that is no longer the version's.
var errNotKept = errors.New("the version keeps its rows otherwise now")

// sqlGenerationTables lists the partitions of a batch table.
const sqlGenerationTables = `
SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace n ON n.oid = p.relnamespace
 WHERE n.nspname = @schema AND p.relname = @batch AND NOT i.inhdetachpending ORDER BY 1`

// Expire deletes rows that are no longer kept, of mode lambda also those of the generations, in small transactions, and
// says how many. Rows that a commit has locked are left to the next call.
func (Store) Expire(ctx context.Context, pool *pg.Pool, v job.Version) (deleted int64, err error) {
	if v.Layout.Keep == nil || v.Layout.Keep.For <= 0 {
		return 0, nil
	}
	tables := []string{v.Table()}
	if v.Layout.Lambda {
		members, err := pg.Collect(ctx, pool, pgx.RowTo[string], sqlGenerationTables,
			pgx.NamedArgs{"schema": v.Schema, "batch": v.Batch()})
		if err != nil {
			return 0, fmt.Errorf("list the generations of %s: %w", v.Ref, err)
		}
		tables = append(tables, members...)
	}
	for _, table := range tables {
		n, err := expire(ctx, pool, v, table)
		deleted += n
		if errors.Is(err, errNotKept) {
			return deleted, nil
		}
		if err != nil {
			return deleted, fmt.Errorf("delete expired rows of %s: %w", v.Ref, err)
		}
	}
	return deleted, nil
}

// expire deletes expired rows of one table of a version.
func expire(ctx context.Context, pool *pg.Pool, v job.Version, table string) (deleted int64, err error) {
	sql := fmt.Sprintf(`DELETE FROM %s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %[1]s WHERE %s < %s LIMIT %d FOR UPDATE SKIP LOCKED))`,
		pg.Ident(v.Schema, table), pg.Ident(v.Layout.Keep.Column), v.Layout.Keep.Cutoff(), expireRows)
	args := refArgs(v.Ref)
	args["keep"], args["for"] = pg.Interval(v.Layout.Keep.For), fmt.Sprint(int64(v.Layout.Keep.For))
	for range expireBatches {
		var n int64
		err := pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
			tag, err := tx.Exec(ctx, sqlExpiring, args)
			if err != nil {
				return err
			}
			if tag.RowsAffected() == 0 {
				return errNotKept
			}
			tag, err = tx.Exec(pg.Long(ctx), sql)
			n = tag.RowsAffected()
			return err
		})
		if err != nil {
			return deleted, err
		}
		if deleted += n; n < expireRows {
			break
		}
	}
	return deleted, nil
}
