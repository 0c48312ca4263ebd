package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Timings is where the time of a version went, in seconds; null is a step that it has not done. Start, Replay, Build,
// Index, Analyze, CatchUp and Flip follow each other. Read, Decode, Group and Land are what the workers of the replay
// were busy with: they run beside each other, so their sum is more than Replay.
type Timings struct {
	Start   *float64 `json:"start"`    // until the ranges to replay were frozen
	Replay  *float64 `json:"replay"`   // until the last segment was done
	Read    *float64 `json:"read"`     // waiting for the brokers, taking their answers apart
	Decode  *float64 `json:"decode"`   // records to columns
	Group   *float64 `json:"group"`    // the query
	Land    *float64 `json:"land"`     // copying rows to PostgreSQL
	Build   *float64 `json:"build"`    // merging them into the table
	Index   *float64 `json:"index"`    // its unique index
	Analyze *float64 `json:"analyze"`  // its statistics
	CatchUp *float64 `json:"catch_up"` // from the built table to the first time that it was ready
	Flip    *float64 `json:"flip"`     // barrier and transaction, up to the view's lock
}

const sqlTimings = `
SELECT extract(epoch FROM v.frozen_at - v.created_at)::double precision AS start,
       extract(epoch FROM g.done_at - v.frozen_at)::double precision AS replay, g.read, g.decode, g.grouped AS "group", g.land,
       e.build, e.index, e.analyze, extract(epoch FROM e.ready_at - e.built_at)::double precision AS catch_up, e.flip
  FROM kappactl.version v
  LEFT JOIN LATERAL (
       SELECT max(done_at) AS done_at, sum((timings ->> 'read')::double precision) AS read,
              sum((timings ->> 'decode')::double precision) AS decode, sum((timings ->> 'group')::double precision) AS grouped,
              sum((timings ->> 'land')::double precision) AS land
         FROM kappactl.segment s WHERE s.job = v.job AND s.number = v.number AND s.state = 'done') g ON true
  LEFT JOIN LATERAL (
       SELECT max((detail ->> 'seconds')::double precision) FILTER (WHERE kind = 'built.fill') AS build,
              max((detail ->> 'seconds')::double precision) FILTER (WHERE kind = 'built.index') AS index,
              max((detail ->> 'seconds')::double precision) FILTER (WHERE kind = 'built.analyze') AS analyze,
              max(at) FILTER (WHERE kind = 'built.analyze') AS built_at,
              min(at) FILTER (WHERE kind = 'phase' AND detail ->> 'to' = 'caught_up') AS ready_at,
              (array_agg((detail ->> 'seconds')::double precision ORDER BY id DESC) FILTER (WHERE kind = 'promoted'))[1] AS flip
         FROM kappactl.event x WHERE x.job = v.job AND x.number = v.number) e ON true
 WHERE v.job = @job AND v.number = @number`

// Timings reads where the time of a version went.
func (s *Store) Timings(ctx context.Context, ref job.Ref) (Timings, error) {
	t, err := ReadTimings(ctx, s.pool, string(ref.Job), int(ref.Number))
	if err != nil {
		return t, fmt.Errorf("read the timings of %s: %w", ref, err)
	}
	return t, nil
}

// ReadTimings are the durations of the phases of a deployment.
func ReadTimings(ctx context.Context, db pg.DB, name string, number int) (Timings, error) {
	found, err := pg.Structs[Timings](ctx, db, sqlTimings, pgx.NamedArgs{"job": name, "number": number})
	if err != nil || len(found) == 0 {
		return Timings{}, err
	}
	return found[0], nil
}
