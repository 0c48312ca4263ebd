package generation

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Held locks a generation and reports whether it is under the claim of who removes it.
func Held(ctx context.Context, tx *pg.Tx, id, claim int64) (bool, error) {
	tag, err := tx.Exec(ctx, `SELECT 1 FROM kappactl.generation WHERE id = @id AND claim = @claim FOR UPDATE`,
		pgx.NamedArgs{"id": id, "claim": claim})
	if err != nil {
		return false, fmt.Errorf("lock a generation: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// Readers are the process ids of the sessions of the database whose snapshot may be older than the last flip away from a
// generation, whatever they are: readers, our own comparisons, and standbys that report what their queries see. Of a
// generation that was never live there are none.
func Readers(ctx context.Context, db pg.DB, id int64) ([]int32, error) {
	rows, err := db.Query(ctx, `SELECT a.pid FROM kappactl.generation g, pg_stat_activity a
		WHERE g.id = @id AND g.left_xid IS NOT NULL AND a.backend_xmin IS NOT NULL AND a.pid <> pg_backend_pid()
		  AND (a.datname = current_database() OR a.backend_type = 'walsender')
		  AND a.backend_type <> 'autovacuum worker' AND age(a.backend_xmin) >= age(g.left_xid::xid) ORDER BY 1`, pgx.NamedArgs{"id": id})
	if err != nil {
		return nil, fmt.Errorf("look for open snapshots: %w", err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return nil, fmt.Errorf("look for open snapshots: %w", err)
	}
	return pids, nil
}

// Oldest is the number of the oldest generation of a version that readers may be shown.
func Oldest(ctx context.Context, db pg.DB, ref job.Ref) (int, error) {
	var oldest int
	err := db.QueryRow(ctx, `SELECT coalesce(min(generation), 0) FROM kappactl.generation
		WHERE job = @job AND number = @number AND state IN ('live', 'kept')`, args(ref)).Scan(&oldest)
	if err != nil {
		return 0, fmt.Errorf("read the generations of %s: %w", ref, err)
	}
	return oldest, nil
}

// EndVersion ends all generations of a version whose tables are gone.
func EndVersion(ctx context.Context, db pg.DB, ref job.Ref) error {
	a := args(ref)
	from, to := steps(VersionEnd)
	a["from"], a["to"] = from, to
	_, err := db.Exec(ctx, `UPDATE kappactl.generation AS g
		   SET state = s.to_state, ended_at = coalesce(g.ended_at, clock_timestamp()), dropped_at = clock_timestamp()
		  FROM unnest(@from::text[], @to::text[]) AS s (from_state, to_state)
		 WHERE g.job = @job AND g.number = @number AND g.state = s.from_state`, a)
	if err != nil {
		return fmt.Errorf("end the generations of %s: %w", ref, err)
	}
	return nil
}
