package generation

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
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

// sqlReaders lists who may hold a snapshot that is older than the last flip away from a generation. Without
// pg_read_all_stats the kind of other roles' backends is hidden, and their snapshots are not: an unknown kind counts.
// Standbys that report what their queries see do so through a walsender or, when they have one, through their
// replication slot.
const sqlReaders = `
SELECT 'session ' || a.pid FROM kappactl.generation g, pg_stat_activity a
 WHERE g.id = @id AND a.pid <> pg_backend_pid() AND age(a.backend_xmin) >= age(g.left_xid::xid)
   AND CASE WHEN a.datname IS NULL THEN coalesce(a.backend_type, 'walsender') = 'walsender'
       ELSE a.datname = current_database() AND coalesce(a.backend_type, '') <> 'autovacuum worker' END
UNION ALL
SELECT 'replication slot ' || s.slot_name FROM kappactl.generation g, pg_replication_slots s
 WHERE g.id = @id AND s.slot_type = 'physical' AND age(s.xmin) >= age(g.left_xid::xid)
ORDER BY 1`

// Readers are the sessions of the database and the replication slots whose snapshots may be older than the last flip
// away from a generation: of readers, of our own comparisons, of queries on standbys. Of a generation that was never
// live there are none.
func Readers(ctx context.Context, db pg.DB, id int64) ([]string, error) {
	found, err := pg.Collect(ctx, db, pgx.RowTo[string], sqlReaders, pgx.NamedArgs{"id": id})
	if err != nil {
		return nil, fmt.Errorf("look for open snapshots: %w", err)
	}
	return found, nil
}

// Oldest is the number of the oldest generation of a version, except for one, whose rows readers may see: those that
// can be shown, and retired ones that are still in the batch table, which transactions that began before may read.
func Oldest(ctx context.Context, db pg.DB, ref job.Ref, except int) (int, error) {
	a := args(ref)
	a["except"] = except
	var oldest int
	err := db.QueryRow(ctx, `SELECT coalesce(min(generation), 0) FROM kappactl.generation
		WHERE job = @job AND number = @number AND generation <> @except
		  AND (state IN ('live', 'kept') OR state = 'retired' AND dropped_at IS NULL AND left_at IS NOT NULL)`, a).Scan(&oldest)
	if err != nil {
		return 0, fmt.Errorf("read the generations of %s: %w", ref, err)
	}
	return oldest, nil
}

// NoteTrouble notes, under the claim of who removes a generation, why that is tried again or what it waits for.
func NoteTrouble(ctx context.Context, db pg.DB, id, claim int64, why reason.Reason) error {
	_, err := db.Exec(ctx, `UPDATE kappactl.generation SET trouble = @why::jsonb
		WHERE id = @id AND claim = @claim AND dropped_at IS NULL AND trouble <> @why::jsonb`,
		pgx.NamedArgs{"id": id, "claim": claim, "why": why})
	if err != nil {
		return fmt.Errorf("note the trouble of a generation: %w", err)
	}
	return nil
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
