package abtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// explained is how PostgreSQL runs a statement, with what it really did.
func (r *rig) explained(c *pgx.Conn, sql string) string {
	r.t.Helper()
	rows, err := c.Query(r.t.Context(), "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) "+sql)
	if err != nil {
		r.t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return strings.Join(lines, "\n")
}

// A split view costs its readers one call of the picker for each statement: indexes, orders and joins reach through
// it, and the arms that a reader does not read are not executed.
func TestPlansReachThroughTheSplit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 2 {
		r.exec(fmt.Sprintf(`INSERT INTO orders__v%d (id, n) SELECT i, %[1]d FROM generate_series(%d, 60000) i`, n+1, rigRows+1))
		r.exec(fmt.Sprintf(`ANALYZE orders__v%d`, n+1))
	}
	r.exec(`CREATE TABLE ten AS SELECT i * 1000::bigint AS id FROM generate_series(1, 10) i; ANALYZE ten`)
	r.ok(ledger.ABStart, arms(.5, .5))
	for _, pin := range []string{"v1", "v2"} {
		c := r.connect()
		if _, err := c.Exec(t.Context(), `SELECT set_config('kappactl.pin_orders', $1, false)`, pin); err != nil {
			t.Fatal(err)
		}
		for _, view := range []string{"orders", "orders_for('u1')"} {
			for _, shape := range []struct {
				what, sql string
				has, not  []string
			}{
				{"a point read", `SELECT * FROM %s o WHERE o.id = 4711`, []string{"InitPlan", "Index", "never executed"}, []string{"Seq Scan"}},
				{"the first five", `SELECT * FROM %s o ORDER BY o.id LIMIT 5`, []string{"Merge Append"}, []string{"Sort\n", "Seq Scan"}},
				{"a join", `SELECT * FROM ten JOIN %s o USING (id)`, []string{"Nested Loop"}, []string{"Seq Scan on orders__v"}},
			} {
				plan := r.explained(c, fmt.Sprintf(shape.sql, view))
				for _, part := range shape.has {
					if !strings.Contains(plan, part) {
						t.Errorf("%s in %s, pinned to %s, has no %s:\n%s", shape.what, view, pin, part, plan)
					}
				}
				for _, part := range shape.not {
					if strings.Contains(plan, part) {
						t.Errorf("%s in %s, pinned to %s, has %q:\n%s", shape.what, view, pin, part, plan)
					}
				}
				if n := strings.Count(plan, "InitPlan"); n != 1 {
					t.Errorf("%s in %s asks for the arm %d times:\n%s", shape.what, view, n, plan)
				}
			}
		}
		if _, err := c.Exec(t.Context(), `SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
			SET min_parallel_index_scan_size = 0; SET max_parallel_workers_per_gather = 2`); err != nil {
			t.Fatal(err)
		}
		if plan := r.explained(c, `SELECT count(*) FROM orders WHERE n > 0`); !strings.Contains(plan, "Gather") {
			t.Errorf("a count is not parallel:\n%s", plan)
		}
	}
}

// Experiments begin and end, and weights move, under readers who see one whole version at any time, and no error.
func TestReadersSeeWholeVersionsWhileExperimentsComeAndGo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	over := make(chan struct{})
	group, ctx := errgroup.WithContext(t.Context())
	for n, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.ReadCommitted, pgx.RepeatableRead} {
		c := r.connect()
		sql := "SELECT count(*), count(DISTINCT n) FROM orders"
		if n == 1 {
			if _, err := c.Prepare(ctx, "whole", sql); err != nil {
				t.Fatal(err)
			}
			sql = "whole"
		}
		group.Go(func() error {
			for {
				select {
				case <-over:
					return nil
				default:
				}
				if err := whole(ctx, c, level, sql); err != nil {
					return err
				}
			}
		})
	}
	for range 8 {
		r.ok(ledger.ABStart, sticky(arms(.5, .5)))
		for range 3 {
			r.ok(ledger.ABWeights, arms(0, 1))
			r.ok(ledger.ABWeights, arms(1, 0))
		}
		r.ok(ledger.ABStop, ledger.Args{})
	}
	close(over)
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// whole fails a count that is not that of one version.
func whole(ctx context.Context, c *pgx.Conn, level pgx.TxIsoLevel, sql string) error {
	return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('kappactl.subject', 'u1', true)`); err != nil {
			return err
		}
		var rows, versions int
		if err := tx.QueryRow(ctx, sql).Scan(&rows, &versions); err != nil {
			return err
		}
		if rows != rigRows || versions != 1 {
			return fmt.Errorf("%d rows of %d versions", rows, versions)
		}
		return nil
	})
}

// Behind a pooler in transaction mode, with few connections that many clients share, experiments come and go: a client that names a
// subject reads one whole version, and the next one on its connection, which names none, reads the control.
func TestNoSubjectLeaksThroughAPoolerWhileExperimentsComeAndGo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	through := pgtest.Bouncer(t, r.dsn, 2)
	over := make(chan struct{})
	group, ctx := errgroup.WithContext(t.Context())
	const read = `SELECT count(*), count(DISTINCT n), min(n) FROM orders`
	read1 := func(row pgx.Row, nameless bool) error {
		var rows, versions, version int
		if err := row.Scan(&rows, &versions, &version); err != nil {
			return err
		}
		if rows != rigRows || versions != 1 || nameless && version != 1 {
			return fmt.Errorf("%d rows of %d versions, v%d; nameless: %v", rows, versions, version, nameless)
		}
		return nil
	}
	clients := []func(*pgx.Conn) error{
		func(c *pgx.Conn) error { return read1(c.QueryRow(ctx, read), true) },
		func(c *pgx.Conn) error { return read1(c.QueryRow(ctx, read), true) },
		func(c *pgx.Conn) error {
			return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, `SET LOCAL kappactl.subject = 'u1'`); err != nil {
					return err
				}
				return read1(tx.QueryRow(ctx, read), false)
			})
		},
		func(c *pgx.Conn) error { // one round trip, in one transaction
			batch := &pgx.Batch{}
			batch.Queue(`SELECT set_config('kappactl.subject', 'u1', true)`)
			batch.Queue(read)
			results := c.SendBatch(ctx, batch)
			if _, err := results.Exec(); err != nil {
				return errors.Join(err, results.Close())
			}
			return errors.Join(read1(results.QueryRow(), false), results.Close())
		},
		func(c *pgx.Conn) error {
			return read1(c.QueryRow(ctx, `SELECT count(*), count(DISTINCT n), min(n) FROM orders_for('u1')`), false)
		},
	}
	r.ok(ledger.ABStart, arms(0, 1)) // the function is there from now on
	for i, read := range clients {
		config, err := pgx.ParseConfig(through)
		if err != nil {
			t.Fatal(err)
		}
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
		c, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
		group.Go(func() error {
			for {
				select {
				case <-over:
					return nil
				default:
				}
				// Between two experiments there is no function, and PostgreSQL locks none that it plans.
				err := read(c)
				gone := i == len(clients)-1 && slices.Contains([]string{pgerrcode.UndefinedFunction, pgerrcode.InternalError}, pg.Code(err))
				if err != nil && !gone {
					return fmt.Errorf("client %d: %w", i, err)
				}
			}
		})
	}
	for range 8 {
		r.ok(ledger.ABStop, ledger.Args{})
		r.ok(ledger.ABStart, sticky(arms(0, 1)))
		r.ok(ledger.ABWeights, arms(.5, .5))
	}
	close(over)
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
