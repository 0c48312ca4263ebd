package speedlayer

import (
	"context"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// epochPages is the number of table pages that one statement of DropEpochs scans.
const epochPages = 2_000

// DropEpochs deletes the rows of a version's table whose epoch is older than the given one, and returns how many.
// Nobody writes them any more. It reads the table once, in windows of pages: a search for each next batch of old rows
// would read it from the start each time.
func (Store) DropEpochs(ctx context.Context, pool *pg.Pool, v job.Version, before int) (int64, error) {
	table := pg.Ident(v.Schema, v.Table())
	var pages, deleted int64
	err := pool.QueryRow(ctx, `SELECT pg_relation_size($1::text::regclass) / current_setting('block_size')::bigint`,
		table).Scan(&pages)
	if err != nil {
		return 0, fmt.Errorf("read the size of %s: %w", table, err)
	}
	for first := int64(0); first <= pages; first += epochPages {
		tag, err := pool.Exec(pg.Long(ctx),
			fmt.Sprintf(`DELETE FROM %s WHERE ctid >= '(%d,0)' AND ctid < '(%d,0)' AND %s < %d`,
				table, first, first+epochPages, pg.Ident(job.EpochColumn), before))
		if err != nil {
			return deleted, fmt.Errorf("delete old epochs of %s: %w", table, err)
		}
		deleted += tag.RowsAffected()
	}
	return deleted, nil
}
