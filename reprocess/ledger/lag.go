package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// LagPoint is how far behind a deployment's version was at a moment. null is unknown. Its JSON is documented and only
// ever grows.
type LagPoint struct {
	At               time.Time `json:"at"`
	Phase            job.Phase `json:"phase"`
	Position         *int64    `json:"position"` // sums of offsets over the partitions
	End              *int64    `json:"end"`
	LagRecords       *int64    `json:"lag_records"`
	LagSeconds       *float64  `json:"lag_seconds"` // of the partition that is furthest behind
	RecordsPerSecond *float64  `json:"records_per_second"`
}

// LagOf is the totals of a version as a point of its series.
func LagOf(t readiness.Totals) LagPoint {
	return LagPoint{
		Position: &t.Position, End: t.LastStable, LagRecords: t.Lag, LagSeconds: t.LagSeconds,
		RecordsPerSecond: t.RecordsPerSecond,
	}
}

// ReadLagSeries reads how many points are stored of a deployment, the first and the last.
func ReadLagSeries(ctx context.Context, db pg.DB, deployment int64) (readiness.LagSeries, error) {
	var l readiness.LagSeries
	var first, last *time.Time
	err := db.QueryRow(ctx, `SELECT count(*), min(at), max(at), coalesce((array_agg(phase ORDER BY at DESC))[1], '')
		FROM kappactl.lag_point WHERE deployment = @id`, pgx.NamedArgs{"id": deployment}).Scan(&l.Count, &first, &last, &l.Phase)
	if err != nil {
		return readiness.LagSeries{}, fmt.Errorf("read the lag of deployment %d: %w", deployment, err)
	}
	if first != nil && last != nil {
		l.First, l.Last = *first, *last
	}
	return l, nil
}

// NewLagPoint is a point that is to be written of a deployment.
type NewLagPoint struct {
	State *State
	LagPoint
}

// AddLagPoints writes points, each fenced by its deployment's claim.
func AddLagPoints(ctx context.Context, db pg.DB, points []NewLagPoint) error {
	type row struct {
		ID    int64 `json:"id"`
		Claim int64 `json:"claim"`
		LagPoint
	}
	rows := make([]row, len(points))
	for i, p := range points {
		rows[i] = row{p.State.ID, p.State.Claim, p.LagPoint}
		rows[i].Phase = p.State.Phase
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("encode the lag of %d deployments: %w", len(points), err)
	}
	_, err = db.Exec(ctx, `INSERT INTO kappactl.lag_point (deployment, phase, position, end_offset, lag_records, lag_seconds, records_per_second)
		SELECT d.id, r.phase, r.position, r."end", r.lag_records, r.lag_seconds, r.records_per_second
		FROM jsonb_to_recordset(@rows::jsonb) AS r (id bigint, claim bigint, phase text, position bigint, "end" bigint, lag_records bigint,
			lag_seconds double precision, records_per_second double precision)
		JOIN kappactl.deployment d ON d.id = r.id AND d.claim = r.claim ORDER BY d.id
		ON CONFLICT (deployment, at) DO NOTHING`, pgx.NamedArgs{"rows": string(text)})
	if err != nil {
		return fmt.Errorf("write the lag of %d deployments: %w", len(points), err)
	}
	return nil
}

// Lag is the series of a deployment, oldest first.
func (s *Store) Lag(ctx context.Context, deployment int64) ([]LagPoint, error) {
	rows, err := pg.Structs[LagPoint](ctx, s.pool, `SELECT at, phase, position, end_offset AS "end", lag_records, lag_seconds, records_per_second
		FROM kappactl.lag_point WHERE deployment = @id ORDER BY at`, pgx.NamedArgs{"id": deployment})
	if err != nil {
		return nil, fmt.Errorf("read the lag of deployment %d: %w", deployment, err)
	}
	for i := range rows {
		rows[i].At = rows[i].At.UTC()
	}
	return rows, nil
}
