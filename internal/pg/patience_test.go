package pg_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// TestAStatementThatIsNotAnsweredIsGivenUp: each way of asking is bounded without a deadline of the caller.
func TestAStatementThatIsNotAnsweredIsGivenUp(t *testing.T) {
	t.Parallel()
	pool, err := pg.Open(t.Context(), pg.Config{DSN: pgtest.Database(t), Answer: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	const never = `SELECT pg_sleep(600)`
	in := func(f func(context.Context, *pg.Tx) error) func(context.Context) error {
		return func(ctx context.Context) error {
			return pool.ReadCommitted(ctx, func(tx *pg.Tx) error { return f(ctx, tx) })
		}
	}
	asks := map[string]func(context.Context) error{
		"exec":  func(ctx context.Context) error { _, err := pool.Exec(ctx, never); return err },
		"query": func(ctx context.Context) error { return drain(pool.Query(ctx, never)) },
		"row":   func(ctx context.Context) error { return pool.QueryRow(ctx, never).Scan(nil) },
		"in a transaction": in(func(ctx context.Context, tx *pg.Tx) error {
			_, err := tx.Exec(ctx, never)
			return err
		}),
		"in a savepoint": in(func(ctx context.Context, tx *pg.Tx) error {
			save, err := tx.Raw().Begin(ctx)
			if err != nil {
				return err
			}
			return drain(save.Query(ctx, never))
		}),
	}
	for name, ask := range asks {
		if err := ask(t.Context()); err == nil || !pg.Unreachable(err) {
			t.Errorf("%s: %v, want an error that counts as unreachable", name, err)
		}
	}
	long := func(ctx context.Context) error { _, err := pool.Exec(ctx, `SELECT pg_sleep(0.4)`); return err }
	if err := long(pg.Long(t.Context())); err != nil {
		t.Errorf("a long statement: %v", err)
	}
	if err := long(t.Context()); err == nil {
		t.Error("the same statement is not long and was waited for")
	}
}

func drain(rows pgx.Rows, err error) error {
	if err != nil {
		return err
	}
	_, err = pgx.CollectRows(rows, func(pgx.CollectableRow) (int, error) { return 0, nil })
	return err
}

func TestAConnectionThatTheDriverHasClosedIsALostServer(t *testing.T) {
	t.Parallel()
	if err := fmt.Errorf("switch: %w", pgconn.ErrConnClosed); !pg.Unreachable(err) {
		t.Errorf("%v does not count as unreachable", err)
	}
}

func TestATransactionThatStandsStillIsEnded(t *testing.T) {
	t.Parallel()
	pool, err := pg.Open(t.Context(), pg.Config{DSN: pgtest.Database(t), Idle: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	other, err := pg.Open(t.Context(), pg.Config{DSN: pgtest.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for name, in := range map[string]func(context.Context, func(*pg.Tx) error) error{
		"read committed": pool.ReadCommitted, "snapshot": pool.Snapshot, "read only": pool.ReadOnly,
	} {
		err := in(t.Context(), func(tx *pg.Tx) error {
			var pid int
			if err := tx.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
				return err
			}
			there := true
			for there {
				if err := other.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, pid).Scan(&there); err != nil {
					return err
				}
			}
			_, err := tx.Exec(t.Context(), `SELECT 1`)
			return err
		})
		if err == nil || !pg.Unreachable(err) {
			t.Errorf("%s: %v, want an error that counts as unreachable", name, err)
		}
	}
}
