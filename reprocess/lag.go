package reprocess

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// LagPoint is how far behind a deployment's version was at a moment. null is unknown. Its JSON is documented and only ever grows.
type LagPoint struct {
	At               time.Time `json:"at"`
	Phase            job.Phase `json:"phase"`
	Position         *int64    `json:"position"` // sums of offsets over the partitions
	End              *int64    `json:"end"`
	LagRecords       *int64    `json:"lag_records"`
	LagSeconds       *float64  `json:"lag_seconds"` // of the partition that is furthest behind
	RecordsPerSecond *float64  `json:"records_per_second"`
}

const (
	// maxLagPoints bounds a deployment's series. Points get further apart as it gets older (lagApart), so that weeks of waiting fit in
	// without losing the replay at their beginning: 41 in the first 40 s, 180 in an hour, 420 in a week.
	maxLagPoints = 500
	lagApart     = 40
)

// lagEvery is how far apart points are that long after the first.
func lagEvery(since time.Duration) time.Duration { return max(time.Second, since/lagApart) }

// lagSeries is where the series of a deployment stands. Its owner is the watch.
type lagSeries struct {
	read  bool
	first time.Time // of the database's clock, as last
	last  time.Time
	phase job.Phase
	count int
}

// due says that a point is to be kept.
func (l lagSeries) due(now time.Time, phase job.Phase) bool {
	return l.count < maxLagPoints && (l.count == 0 || phase != l.phase || now.Sub(l.last) >= lagEvery(now.Sub(l.first)))
}

// keepLag adds what was sampled to the deployment's series when a point is due.
func (w *watch) keepLag(ctx context.Context, st *state, rows []observed) error {
	if st.State.Ended() || len(rows) == 0 {
		return nil
	}
	if !w.lag.read {
		var err error
		if w.lag, err = readLagSeries(ctx, w.c.Pool, st.ID); err != nil {
			return err
		}
	}
	if !w.lag.due(st.Now, st.Phase) {
		return nil
	}
	if err := addLagPoint(ctx, w.c.Pool, st, lagOf(rows)); err != nil {
		return err
	}
	if w.lag.count == 0 {
		w.lag.first = st.Now
	}
	w.lag.last, w.lag.phase, w.lag.count = st.Now, st.Phase, w.lag.count+1
	return nil
}

// lagOf is one point of a version's partitions; what is unknown of one of them is unknown of the sum.
func lagOf(rows []observed) LagPoint {
	var p LagPoint
	position, end, lag, known, rated := int64(0), int64(0), int64(0), true, true
	var seconds, rate float64
	timed := false
	for _, r := range rows {
		position += r.Position
		if r.LastStable == nil || r.Lag == nil {
			known = false
		} else {
			end, lag = end+*r.LastStable, lag+*r.Lag
		}
		if r.LagSeconds != nil {
			seconds, timed = max(seconds, *r.LagSeconds), true
		}
		if r.ReadRate == nil {
			rated = false
		} else {
			rate += *r.ReadRate
		}
	}
	p.Position = &position
	if known {
		p.End, p.LagRecords = &end, &lag
	}
	if timed {
		p.LagSeconds = &seconds
	}
	if rated {
		p.RecordsPerSecond = &rate
	}
	return p
}

func readLagSeries(ctx context.Context, db pg.DB, deployment int64) (lagSeries, error) {
	l := lagSeries{read: true}
	var first, last *time.Time
	err := db.QueryRow(ctx, `SELECT count(*), min(at), max(at), coalesce((array_agg(phase ORDER BY at DESC))[1], '')
		FROM kappactl.lag_point WHERE deployment = @id`, pgx.NamedArgs{"id": deployment}).Scan(&l.count, &first, &last, &l.phase)
	if err != nil {
		return lagSeries{}, fmt.Errorf("read the lag of deployment %d: %w", deployment, err)
	}
	if first != nil && last != nil {
		l.first, l.last = *first, *last
	}
	return l, nil
}

// addLagPoint writes a point, fenced by the deployment's claim.
func addLagPoint(ctx context.Context, db pg.DB, st *state, p LagPoint) error {
	_, err := db.Exec(ctx, `INSERT INTO kappactl.lag_point (deployment, phase, position, end_offset, lag_records, lag_seconds, records_per_second)
		SELECT id, @phase, @position, @end, @lag, @seconds, @rate FROM kappactl.deployment WHERE id = @id AND claim = @claim
		ON CONFLICT (deployment, at) DO NOTHING`,
		pgx.NamedArgs{
			"id": st.ID, "claim": st.claim, "phase": string(st.Phase), "position": p.Position, "end": p.End, "lag": p.LagRecords,
			"seconds": p.LagSeconds, "rate": p.RecordsPerSecond,
		})
	if err != nil {
		return fmt.Errorf("write the lag of deployment %d: %w", st.ID, err)
	}
	return nil
}

// Lag is the series of a deployment, oldest first.
func (s *Store) Lag(ctx context.Context, deployment int64) ([]LagPoint, error) {
	rows, err := collect[LagPoint](ctx, s.pool, `SELECT at, phase, position, end_offset AS "end", lag_records, lag_seconds, records_per_second
		FROM kappactl.lag_point WHERE deployment = @id ORDER BY at`, pgx.NamedArgs{"id": deployment})
	if err != nil {
		return nil, fmt.Errorf("read the lag of deployment %d: %w", deployment, err)
	}
	for i := range rows {
		rows[i].At = rows[i].At.UTC()
	}
	return rows, nil
}
