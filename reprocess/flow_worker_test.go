package reprocess_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// worker works until stop.
func (w *world) worker() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.work(ctx) }()
	return func() { cancel(); <-ended }
}

// work does what speedlayer does, without records: an offset counts one.
func (w *world) work(ctx context.Context) {
	for every(ctx, 5*time.Millisecond) {
		var refs []struct {
			Number int
			Phase  job.Phase
		}
		rows, err := w.pool.Query(ctx, `SELECT number, phase FROM kappactl.version WHERE paused_at IS NULL`)
		if err == nil {
			refs, err = pgx.CollectRows(rows, pgx.RowToStructByName[struct {
				Number int
				Phase  job.Phase
			}])
		}
		for _, r := range refs {
			w.mu.Lock()
			idle := w.idle[r.Number]
			w.mu.Unlock()
			switch {
			case idle || err != nil || w.tardy && rand.IntN(2) == 0:
			case r.Phase == job.Replaying:
				err = w.replay(ctx, r.Number)
			case r.Phase.Consumes():
				err = w.follow(ctx, r.Number)
			}
		}
		if err != nil && ctx.Err() == nil && !pg.Retryable(err) && pg.Code(err) != pgerrcode.UndefinedTable {
			w.t.Errorf("worker: %v", err)
		}
	}
}

func (w *world) setIdle(number int, idle bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle[number] = idle
}

func (w *world) replay(ctx context.Context, number int) error {
	return w.pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		var id, n int64
		var p int32
		err := tx.QueryRow(ctx, `UPDATE kappactl.segment SET state = 'done', rows = 1, records = to_offset - from_offset
			WHERE id = (SELECT min(id) FROM kappactl.segment WHERE number = @number AND state = 'open') RETURNING id, partition, records`,
			pgx.NamedArgs{"number": number}).Scan(&id, &p, &n)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		columns, values, _ := w.row()
		_, err = tx.Exec(ctx, fmt.Sprintf(`INSERT INTO public.counts__v%d_staging (_segment, %s) VALUES (@id, %s)`, number, columns, values),
			pgx.NamedArgs{"id": id, "p": p, "n": n})
		return err
	})
}

// row is how a row of a version's table is inserted, and its unique key.
func (w *world) row() (columns, values, key string) {
	if w.keyed {
		return "p, n", "@p, @n", pg.UniqueKey([]string{"p"})
	}
	return "n", "@n", pg.UniqueKey(nil)
}

func (w *world) follow(ctx context.Context, number int) error {
	facts, err := w.brokers.facts()
	if err != nil {
		return nil //nolint:nilerr // the cluster is away
	}
	return w.pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		for _, f := range facts {
			var n int64
			err := tx.QueryRow(ctx, `WITH old AS (SELECT next, CASE WHEN hold_until > clock_timestamp() THEN least(hold, @end) ELSE @end END AS upto
					FROM kappactl.position WHERE number = @number AND partition = @partition AND topic_id = @topic::uuid AND fault = '' FOR UPDATE)
				UPDATE kappactl.position p SET next = greatest(old.next, old.upto), records = records + greatest(0, old.upto - old.next), owner = 'worker'
				FROM old WHERE p.number = @number AND p.partition = @partition RETURNING p.next - old.next`,
				pgx.NamedArgs{"number": number, "partition": f.ID, "topic": f.TopicID.String(), "end": f.LastStable}).Scan(&n)
			if errors.Is(err, pgx.ErrNoRows) || n == 0 && err == nil {
				continue
			}
			if err != nil {
				return err
			}
			columns, values, key := w.row()
			_, err = tx.Exec(ctx, fmt.Sprintf(`INSERT INTO public.counts__v%d AS t (%s) VALUES (%s)
				ON CONFLICT %s DO UPDATE SET n = t.n + excluded.n`, number, columns, values, key), pgx.NamedArgs{"p": f.ID, "n": n})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
