package generation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// NoteTimings notes seconds by step of a run: a step that is noted is done. Names that are no step are shares of one.
func NoteTimings(ctx context.Context, db pg.DB, ref job.Ref, generation int, seconds map[string]float64) error {
	a := args(ref)
	text, err := json.Marshal(seconds)
	if err != nil {
		return fmt.Errorf("encode the timings of generation %d of %s: %w", generation, ref, err)
	}
	a["generation"], a["seconds"] = generation, string(text)
	_, err = db.Exec(ctx, `UPDATE kappactl.generation SET timings = timings || @seconds::jsonb
		WHERE job = @job AND number = @number AND generation = @generation AND state = 'building'`, a)
	if err != nil {
		return fmt.Errorf("note the timings of generation %d of %s: %w", generation, ref, err)
	}
	return nil
}

// NoteAnalyzed notes that the statistics of the batch table count a generation.
func NoteAnalyzed(ctx context.Context, db pg.DB, id int64, took time.Duration) error {
	_, err := db.Exec(ctx, `UPDATE kappactl.generation SET timings = timings || jsonb_build_object('analyze', @seconds::double precision) WHERE id = @id`,
		pgx.NamedArgs{"id": id, "seconds": took.Seconds()})
	if err != nil {
		return fmt.Errorf("note the statistics of a generation: %w", err)
	}
	return nil
}

// LockBuilding locks a generation until the end of the transaction, so that it is not given up meanwhile. False: it is
// no longer being built.
func LockBuilding(ctx context.Context, tx *pg.Tx, ref job.Ref, generation int) (bool, error) {
	a := args(ref)
	a["generation"] = generation
	tag, err := tx.Exec(ctx, `SELECT 1 FROM kappactl.generation
		WHERE job = @job AND number = @number AND generation = @generation AND state = 'building' FOR SHARE`, a)
	if err != nil {
		return false, fmt.Errorf("lock generation %d of %s: %w", generation, ref, err)
	}
	return tag.RowsAffected() == 1, nil
}

// NoteCompared notes how many keys a generation was compared by, how many of them differ, and whether it is shown all
// the same.
func NoteCompared(ctx context.Context, db pg.DB, ref job.Ref, generation int, compared, changed int64,
	accepted bool,
) error {
	a := args(ref)
	a["generation"], a["compared"], a["changed"], a["accepted"] = generation, compared, changed, accepted
	_, err := db.Exec(ctx, `UPDATE kappactl.generation SET compared = @compared, changed = @changed, accepted = @accepted
		WHERE job = @job AND number = @number AND generation = @generation`, a)
	if err != nil {
		return fmt.Errorf("note the comparison of generation %d of %s: %w", generation, ref, err)
	}
	return nil
}

// NoteAccepted notes that a generation is shown although checks did not pass.
func NoteAccepted(ctx context.Context, db pg.DB, ref job.Ref, generation int) error {
	a := args(ref)
	a["generation"] = generation
	_, err := db.Exec(ctx, `UPDATE kappactl.generation SET accepted = true
		WHERE job = @job AND number = @number AND generation = @generation`, a)
	if err != nil {
		return fmt.Errorf("note that generation %d of %s is accepted: %w", generation, ref, err)
	}
	return nil
}

// NoteSize notes how many rows and bytes a generation has; table is its quoted name.
func NoteSize(ctx context.Context, db pg.DB, ref job.Ref, generation int, table string) error {
	a := args(ref)
	a["generation"], a["table"] = generation, table
	_, err := db.Exec(ctx, `UPDATE kappactl.generation SET bytes = pg_total_relation_size(to_regclass(@table)),
			rows = (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = to_regclass(@table))
		WHERE job = @job AND number = @number AND generation = @generation`, a)
	if err != nil {
		return fmt.Errorf("note the size of generation %d of %s: %w", generation, ref, err)
	}
	return nil
}

// NoteDropped notes that nothing of a generation is left.
func NoteDropped(ctx context.Context, db pg.DB, id int64) error {
	if _, err := db.Exec(ctx,
		`UPDATE kappactl.generation SET dropped_at = clock_timestamp(), trouble = '{}' WHERE id = @id`,
		pgx.NamedArgs{"id": id}); err != nil {
		return fmt.Errorf("note that a generation is dropped: %w", err)
	}
	return nil
}
