package generation

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Current are the generations of versions that have not ended, of one job or, without a name, of all: those of which
// something is left, and the newest run that has ended. They come by job, the newest version and generation first.
func Current(ctx context.Context, db pg.DB, name job.Name) ([]Row, error) {
	found, err := pg.Structs[Row](ctx, db, `SELECT `+columns+` JOIN kappactl.version v USING (job, number)
		WHERE v.ended_at IS NULL AND (@job::text = '' OR g.job = @job)
		  AND (g.dropped_at IS NULL OR g.generation = (SELECT max(n.generation) FROM kappactl.generation n
			WHERE n.job = g.job AND n.number = g.number AND n.request IS NOT NULL AND n.state <> 'building'))
		ORDER BY g.job, g.number DESC, g.generation DESC`, pgx.NamedArgs{"job": string(name)})
	if err != nil {
		return nil, fmt.Errorf("read generations: %w", err)
	}
	return found, nil
}

// SpeedRows is about how many rows the tables of the lambda versions have that have not ended, of one job or, without a
// name, of all. It is the server's estimate, without a lock on the tables.
func SpeedRows(ctx context.Context, db pg.DB, name job.Name) (map[job.Ref]*int64, error) {
	type row struct {
		Job    string
		Number int
		Rows   int64
	}
	found, err := pg.Structs[row](ctx, db, `SELECT v.job, v.number, s.n_live_tup AS rows
		FROM kappactl.version v JOIN kappactl.job j ON j.name = v.job
		JOIN pg_stat_user_tables s ON s.schemaname = j.view_schema AND s.relname = v.job || '__v' || v.number
		WHERE v.ended_at IS NULL AND (@job::text = '' OR v.job = @job)
		  AND EXISTS (SELECT FROM kappactl.generation g WHERE g.job = v.job AND g.number = v.number)`,
		pgx.NamedArgs{"job": string(name)})
	if err != nil {
		return nil, fmt.Errorf("read the size of tables: %w", err)
	}
	out := map[job.Ref]*int64{}
	for _, r := range found {
		out[job.Ref{Job: job.Name(r.Job), Number: job.Number(r.Number)}] = &r.Rows
	}
	return out, nil
}
