package serving

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/retry"
)

// TestReadersSeeOneTotalOver2000Flips: readers in READ COMMITTED and in REPEATABLE READ, one of whom keeps its transaction open all the
// while, see the same total whichever generation is live, and hold no flip up.
func TestReadersSeeOneTotalOver2000Flips(t *testing.T) { // pitfalls 7 and 9
	t.Parallel()
	pool, dsn := pgtest.New(t)
	v := layered(t, pool, hits())
	added(t, pool, v, 1)
	const keys, flips = 50, 2000
	for table, last := range map[string]int{"hits__v1_g0": 0, "hits__v1": 0, "hits__v1_g1": 1} {
		views := 1 // a generation holds what the one before and its epoch do
		if table == "hits__v1_g1" {
			views = 2
		}
		exec(t, pool, fmt.Sprintf(`INSERT INTO %s SELECT '2026-01-01 00:00Z', '/' || i, %d, 0, %d FROM generate_series(1, %d) i`, table, views, last, keys))
	}
	exec(t, pool, fmt.Sprintf(`INSERT INTO hits__v1 SELECT '2026-01-01 00:00Z', '/' || i, 1, 0, 1 FROM generate_series(1, %d) i`, keys))
	switched(t, pool, job.ViewChange{View: public, To: ref(1), Layout: v.Layout})
	total := func(ctx context.Context, q queryer) error {
		rows, err := q.Query(ctx, "SELECT sum(views)::bigint FROM public.hits_by_url")
		if err != nil {
			return err
		}
		n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
		if err == nil && n != 3*keys {
			err = fmt.Errorf("a reader saw a total of %d, want %d", n, 3*keys)
		}
		return err
	}
	var reads atomic.Int64
	var over atomic.Bool
	group, ctx := errgroup.WithContext(t.Context())
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		group.Go(func() error {
			conn, err := pgx.Connect(ctx, dsn)
			if err != nil {
				return err
			}
			defer conn.Close(context.WithoutCancel(ctx))
			for !over.Load() && retry.Sleep(ctx, time.Millisecond) == nil { // without a pause they would keep both cores busy
				err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
					for range 5 {
						if err := total(ctx, tx); err != nil {
							return err
						}
						reads.Add(1)
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	open, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	defer open.Close(t.Context())
	// A flip that waited for this transaction would never end.
	must(t, pgx.BeginTxFunc(t.Context(), open, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		must(t, total(t.Context(), tx))
		for i := range flips {
			exec(t, pool, fmt.Sprintf("UPDATE hits__v1_gen SET generation = %d WHERE generation = %d", (i+1)%2, i%2))
		}
		return total(t.Context(), tx)
	}))
	over.Store(true)
	must(t, group.Wait())
	if reads.Load() < 100 {
		t.Errorf("%d reads: this test proves nothing", reads.Load())
	}
}
