package reprocess_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
)

const flips = 100

// byPartition counts the offsets of each partition and says in every row which version it comes from.
func byPartition(number int) func(*plan.Staging) {
	return func(in *plan.Staging) {
		in.Layout = job.Layout{
			Shape:  job.Rollup,
			Keys:   []job.KeyColumn{{Name: "p", Type: "integer"}},
			States: []job.StateColumn{{Name: "n", Type: "bigint", Combine: `t."n" + e."n"`, Aggregate: `sum(e."n")::bigint`}},
			View: []job.ViewColumn{
				{Name: "p", Type: "integer", Finish: `s."p"`},
				{Name: "n", Type: "bigint", Finish: `s."n"`, StoredAs: "sum", Exact: true},
				{Name: "version", Type: "integer", Finish: fmt.Sprint(number)},
			},
		}
	}
}

// answer is what one read of the view gave.
type answer struct {
	version int
	n       []int64 // by partition
}

const everyRow = `SELECT n, version FROM public.counts ORDER BY p`

// whole takes an answer apart; an empty one, one that lacks a partition, and one of two versions are errors.
func whole(partitions int, rows pgx.Rows, err error) (a answer, _ error) {
	if err != nil {
		return a, err
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByName[struct {
		N       int64
		Version int
	}])
	if err != nil {
		return a, err
	}
	if len(got) != partitions {
		return a, fmt.Errorf("%d rows, want %d", len(got), partitions)
	}
	for _, r := range got {
		if r.Version != got[0].Version {
			return a, fmt.Errorf("rows of v%d and of v%d in one answer", got[0].Version, r.Version)
		}
		a.n = append(a.n, r.N)
	}
	a.version = got[0].Version
	return a, nil
}

// notBelow says which counter fell from one answer to the next.
func (a answer) notBelow(before answer) error {
	for i := range before.n {
		if a.n[i] < before.n[i] {
			return fmt.Errorf("partition %d counts %d of v%d after %d of v%d", i, a.n[i], a.version, before.n[i], before.version)
		}
	}
	return nil
}

// client reads the view in one way until done; it keeps what it saw last.
type client struct {
	partitions int
	last       answer
	saw        [3]int       // answers by version
	changes    atomic.Int64 // from one version to the other
}

func (c *client) took(a answer, err error) error {
	if err != nil {
		return err
	}
	if err := a.notBelow(c.last); err != nil {
		return err
	}
	if c.last.n != nil && c.last.version != a.version {
		c.changes.Add(1)
	}
	c.last = a
	c.saw[a.version]++
	return nil
}

func (c *client) read(rows pgx.Rows, err error) error { return c.took(whole(c.partitions, rows, err)) }

// ways are the clients' ways to read: one turn of each.
func ways() map[string]func(context.Context, *client, *pgx.Conn) error {
	transaction := func(level pgx.TxIsoLevel) func(context.Context, *client, *pgx.Conn) error {
		return func(ctx context.Context, c *client, conn *pgx.Conn) error {
			return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
				for range 2 {
					if err := c.read(tx.Query(ctx, everyRow)); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	return map[string]func(context.Context, *client, *pgx.Conn) error{
		"plain": func(ctx context.Context, c *client, conn *pgx.Conn) error {
			return c.read(conn.Query(ctx, everyRow, pgx.QueryExecModeSimpleProtocol))
		},
		"prepared": func(ctx context.Context, c *client, conn *pgx.Conn) error {
			if _, err := conn.Prepare(ctx, "all", "SELECT * FROM public.counts ORDER BY p"); err != nil { // once a connection
				return err
			}
			rows, err := conn.Query(ctx, "all")
			if err != nil {
				return err
			}
			var a answer
			for rows.Next() {
				var p, version int
				var n int64
				if err := rows.Scan(&p, &n, &version); err != nil {
					return err
				}
				if a.n != nil && version != a.version {
					return fmt.Errorf("rows of v%d and of v%d in one answer", a.version, version)
				}
				a.version, a.n = version, append(a.n, n)
			}
			if len(a.n) != c.partitions && rows.Err() == nil {
				return fmt.Errorf("%d rows, want %d", len(a.n), c.partitions)
			}
			return c.took(a, rows.Err())
		},
		"cursor": func(ctx context.Context, c *client, conn *pgx.Conn) error {
			return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "DECLARE every_row CURSOR FOR "+everyRow); err != nil {
					return err
				}
				return c.read(tx.Query(ctx, "FETCH ALL FROM every_row", pgx.QueryExecModeSimpleProtocol))
			})
		},
		"transactions, read committed":  transaction(pgx.ReadCommitted),
		"transactions, repeatable read": transaction(pgx.RepeatableRead),
	}
}

// TestReadersOver100FlipsSeeNoErrorNothingEmptyNothingMixedAndNoCounterThatFalls flips to and fro while a producer writes and
// the two versions read at a pace of their own.
func TestReadersOver100FlipsSeeNoErrorNothingEmptyNothingMixedAndNoCounterThatFalls(t *testing.T) {
	w := newWorld(t, 100, 100, 100)
	w.keyed, w.tardy = true, true
	w.config.PromoteDeadline = time.Minute
	w.run(1, nil)
	w.finish(w.stage("aaa", byPartition(1)).Deployment, "live", job.ExitOK)
	w.finish(w.stage("bbb", byPartition(2), auto).Deployment, "live", job.ExitOK)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var over atomic.Bool
	g, ctx := errgroup.WithContext(ctx)
	clients := map[string]*client{}
	for name, turn := range ways() {
		c := &client{partitions: 3}
		clients[name] = c
		g.Go(func() error {
			conn, err := pgx.Connect(ctx, w.dsn)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
			for !over.Load() && every(ctx, 5*time.Millisecond) {
				if err := turn(ctx, c, conn); err != nil && ctx.Err() == nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		for i := 0; !over.Load() && every(ctx, 2*time.Millisecond); i++ {
			w.brokers.produce(i%3, int64(1+i%7))
		}
		return nil
	})
	seen := func() bool { // a client may be slow on a loaded machine
		for _, c := range clients {
			if c.changes.Load() < flips/4 {
				return false
			}
		}
		return true
	}
	for i := 0; i < flips || i < 10*flips && !seen(); i++ {
		if i%2 == 0 {
			w.must(1, ledger.Rollback, ledger.Args{})
		} else {
			w.must(2, ledger.Promote, ledger.Args{})
		}
		if ctx.Err() != nil {
			break
		}
	}
	over.Store(true)
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for name, c := range clients {
		t.Logf("%s: v1 %d times, v2 %d times, %d changes", name, c.saw[1], c.saw[2], c.changes.Load())
		if c.changes.Load() < flips/4 {
			t.Errorf("%s: saw only %d flips: the test shows little", name, c.changes.Load())
		}
	}
	w.exact()
}
