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
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

const readerRows = 200

type hit struct {
	URL   string `db:"url"`
	Hour  time.Time
	Views int64
	Total float64
}

// seen fails a result that is not whole or comes from two versions. It returns the version read.
func seen(rows pgx.Rows, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	hits, err := pgx.CollectRows(rows, pgx.RowToStructByName[hit])
	if err != nil {
		return 0, err
	}
	if len(hits) != readerRows {
		return 0, fmt.Errorf("%d rows, want %d", len(hits), readerRows)
	}
	for _, h := range hits {
		if h.Views != hits[0].Views {
			return 0, fmt.Errorf("rows of version %d and of version %d in one result", hits[0].Views, h.Views)
		}
	}
	return hits[0].Views, nil
}

// The three ways to read that a switch has to leave whole.
var readers = map[string]func(context.Context, *pgx.Conn) (int64, error){
	"plain": func(ctx context.Context, c *pgx.Conn) (int64, error) {
		return seen(c.Query(ctx, "SELECT * FROM public.hits_by_url", pgx.QueryExecModeSimpleProtocol))
	},
	"prepared": func(ctx context.Context, c *pgx.Conn) (int64, error) {
		if _, err := c.Prepare(ctx, "all", "SELECT * FROM public.hits_by_url"); err != nil {
			return 0, err
		}
		return seen(c.Query(ctx, "all"))
	},
	"cursor": func(ctx context.Context, c *pgx.Conn) (n int64, err error) {
		return n, pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "DECLARE c CURSOR FOR SELECT * FROM public.hits_by_url"); err != nil {
				return err
			}
			n, err = seen(tx.Query(ctx, "FETCH ALL FROM c", pgx.QueryExecModeSimpleProtocol))
			return err
		})
	},
}

func TestReadersSeeNoErrorNothingEmptyAndNothingMixedOver50Switches(t *testing.T) {
	pool, dsn := pgtest.New(t)
	for n := range job.Number(2) {
		made(t, pool, ref(n+1), hits())
		exec(t, pool, fmt.Sprintf(`INSERT INTO hits__v%[1]d (hour, url, views, total__s)
			SELECT '2026-01-01 10:00Z', 'u' || i, %[1]d, i FROM generate_series(1, %[2]d) i`, n+1, readerRows))
	}
	contract := switched(t, pool, to(1, hits(), nil))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	done := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	counts := map[string]*[3]atomic.Int64{}
	for name, read := range readers {
		count := new([3]atomic.Int64)
		counts[name] = count
		group.Go(func() error {
			conn, err := pgx.Connect(ctx, dsn)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
			for {
				select {
				case <-done:
					return nil
				case <-time.After(time.Millisecond): // without a pause they would keep both cores busy
				}
				version, err := read(ctx, conn)
				if err != nil {
					return fmt.Errorf("%s reader: %w", name, err)
				}
				count[version].Add(1)
			}
		})
	}
	both := func() bool { // every reader has seen both versions; one may be slow on a loaded machine
		for _, c := range counts {
			if c[1].Load() == 0 || c[2].Load() == 0 {
				return false
			}
		}
		return true
	}
	group.Go(func() error {
		defer close(done)
		for i := 0; i < 50 || !both(); i++ {
			if err := switchUnderLoad(ctx, pool, to(job.Number(2-i%2), hits(), contract)); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, group.Wait())
}

// switchUnderLoad is a flip as reprocess does it: a short lock timeout, tried again.
func switchUnderLoad(ctx context.Context, pool *pg.Pool, c job.ViewChange) error {
	for {
		err := pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
			if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '80ms'"); err != nil {
				return err
			}
			return store.Switch(ctx, tx, c, unnoted)
		})
		if err == nil || !pg.Retryable(err) {
			return err
		}
	}
}

func TestASwitchBehindAnIdleReaderGivesUpAndLeavesNoQueue(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	made(t, pool, ref(1), hits(), "/a")
	made(t, pool, ref(2), hits(), "/a")
	contract := switched(t, pool, to(1, hits(), nil))
	err := pool.ReadCommitted(t.Context(), func(idle *pg.Tx) error {
		text(t, idle, "SELECT count(*)::text FROM public.hits_by_url")
		err := pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
			exec(t, tx, "SET LOCAL lock_timeout = '20ms'")
			return store.Switch(t.Context(), tx, to(2, hits(), contract), unnoted)
		})
		if !pg.Retryable(err) {
			t.Errorf("got %v, want a lock timeout that can be retried", err)
		}
		if got := text(t, pool, "SELECT count(*)::text FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"); got != "0" {
			t.Errorf("%s locks are still waited for", got)
		}
		if got := text(t, pool, "SELECT views::text FROM public.hits_by_url"); got != "1" {
			t.Errorf("the view reads version %s", got)
		}
		return nil
	})
	must(t, err)
}
