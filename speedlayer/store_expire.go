package speedlayer

import (
	"context"
	"errors"
	"fmt"

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

// Expire deletes rows that are no longer kept, in small transactions, and says how many. Rows that a commit has locked are
// left to the next call.
func (Store) Expire(ctx context.Context, pool *pg.Pool, ref job.Ref, schema string, l job.Layout) (deleted int64, err error) {
	if l.Keep == nil || l.Keep.For <= 0 {
		return 0, nil
	}
	table := pg.Ident(schema, ref.Table())
	sql := fmt.Sprintf(`DELETE FROM %s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %[1]s WHERE %s < %s LIMIT %d FOR UPDATE SKIP LOCKED))`,
		table, pg.Ident(l.Keep.Column), l.Keep.Cutoff(), expireRows)
	args := refArgs(ref)
	args["keep"], args["for"] = pg.Interval(l.Keep.For), fmt.Sprint(int64(l.Keep.For))
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
		if errors.Is(err, errNotKept) {
			return deleted, nil
		}
		if err != nil {
			return deleted, fmt.Errorf("delete expired rows of %s: %w", ref, err)
		}
		if deleted += n; n < expireRows {
			break
		}
	}
	return deleted, nil
}
