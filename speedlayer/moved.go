package speedlayer

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const (
	// movedRows is up to how many staged rows all keys are looked at. Of more, a share of the keys of about as many rows
	// is.
	movedRows = 200_000
	// movedWithin is how long that may take; what takes longer stays unknown.
	movedWithin = 20 * time.Second
)

// Moved counts the keys that the replay saw in more than one partition. exact is false when it goes by a share of the
// keys. Zero, and exact, when that would take too long. It is asked between Fill and Seal, and only of job.Latest.
func (Store) Moved(ctx context.Context, pool *pg.Pool, v job.Version) (keys int64, exact bool, err error) {
	return countMoved(ctx, pool, v, movedRows)
}

func countMoved(ctx context.Context, pool *pg.Pool, v job.Version, rows int64) (keys int64, exact bool, err error) {
	var share int64
	err = pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		// Fill has analyzed it.
		err := tx.QueryRow(ctx, `SELECT set_config('statement_timeout', $2, true) IS NULL, greatest(1, ceil(reltuples / $3::double precision))::bigint FROM pg_class WHERE oid = $1::text::regclass`,
			pg.Ident(v.Schema, v.Staging()), fmt.Sprint(movedWithin.Milliseconds()), rows).Scan(new(bool), &share)
		if err != nil {
			return err
		}
		args := refArgs(v.Ref)
		args["share"] = share
		return tx.QueryRow(ctx, movedKeys(v), args).Scan(&keys)
	})
	switch {
	case pg.Code(err) == pgerrcode.QueryCanceled && ctx.Err() == nil:
		return 0, true, nil
	case pg.Code(err) == pgerrcode.UndefinedTable:
		return 0, true, ErrSealed
	case err != nil:
		return 0, true, fmt.Errorf("count the keys of %s that are in more than one partition: %w", v.Ref, err)
	}
	return keys * share, share == 1, nil
}

// movedKeys counts, of every @share-th key, those with staged rows of more than one partition.
func movedKeys(v job.Version) string {
	columns := make([]string, len(v.Layout.Keys))
	for i, k := range v.Layout.Keys {
		columns[i] = "e." + pg.Ident(k.Name)
	}
	keys := strings.Join(columns, ", ")
	return fmt.Sprintf(`WITH g AS MATERIALIZED (
	SELECT id, dense_rank() OVER (ORDER BY topic_id, partition) AS part FROM kappactl.segment WHERE job = @job AND number = @number)
SELECT count(*) FROM (SELECT FROM %s AS e JOIN g ON g.id = e.%s
 WHERE @share::bigint = 1 OR mod(hashtext(ROW(%s)::text)::bigint, @share::bigint) = 0
 GROUP BY %[3]s HAVING min(g.part) <> max(g.part)) AS m`, pg.Ident(v.Schema, v.Staging()), pg.Ident(segmentColumn), keys)
}
