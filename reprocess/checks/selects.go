package checks

import (
	"context"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Rows compares the rows of two SELECTs of one layout key by key, in one snapshot. Doubles may differ by what the order
// of additions makes of them. The caller names the sides.
func Rows(ctx context.Context, pool *pg.Pool, l job.Layout, a, b string) (Diff, error) {
	out := Diff{Examples: []Example{}, Offsets: map[string]int64{}}
	err := pool.ReadOnly(ctx, func(tx *pg.Tx) error {
		return compare(pg.Long(ctx), tx.Raw(), direct(tx.Raw()), side{l, a}, side{l, b}, job.DiffHow{}, &out)
	})
	return out, err
}
