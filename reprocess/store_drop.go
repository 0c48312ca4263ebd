package reprocess

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// readJob reads a job without locking it.
func readJob(ctx context.Context, db pg.DB, name job.Name) (jobRow, error) {
	rows, err := collect[jobRow](ctx, db, `SELECT `+jobColumns+` FROM kappactl.job WHERE name = @job`, pgx.NamedArgs{"job": string(name)})
	if err != nil {
		return jobRow{}, fmt.Errorf("read job %s: %w", name, err)
	}
	if len(rows) == 0 {
		return jobRow{}, unknownJob(ctx, db, name)
	}
	return rows[0], nil
}

// droppedRow is a version of which something is left.
type droppedRow struct {
	Number    int
	Phase     job.Phase
	KeepTable bool
	Verdict   job.Verdict
	Reason    string
}

const droppedColumns = `SELECT number, phase, keep_table, verdict, reason
	FROM kappactl.version WHERE job = @job AND ended_at IS NULL ORDER BY number`

// readDropped lists the versions of a job that have not ended, oldest first.
func readDropped(ctx context.Context, db pg.DB, name job.Name) ([]droppedRow, error) {
	rows, err := collect[droppedRow](ctx, db, droppedColumns, pgx.NamedArgs{"job": string(name)})
	return rows, wrap(err, "read versions of %s", name)
}

// lockDropped is readDropped that keeps their controllers from moving them.
func lockDropped(ctx context.Context, tx *pg.Tx, name job.Name) ([]droppedRow, error) {
	rows, err := collect[droppedRow](ctx, tx, droppedColumns+` FOR UPDATE`, pgx.NamedArgs{"job": string(name)})
	return rows, wrap(err, "lock versions of %s", name)
}

// markDropping closes the job's deployments and notes that it is being dropped and which table stays.
func markDropping(ctx context.Context, tx *pg.Tx, j jobRow, keepView bool) error {
	args := pgx.NamedArgs{"job": j.Name, "keep": keepView, "live": j.Live}
	for _, sql := range []string{
		`UPDATE kappactl.version SET keep_table = true WHERE job = @job AND @keep::boolean AND number = @live::integer`,
		`UPDATE kappactl.deployment SET state = CASE WHEN promoted_at IS NULL THEN 'aborted' ELSE 'superseded' END,
			state_since = clock_timestamp(), ended_at = clock_timestamp(), message = 'the job is being dropped'
			WHERE job = @job AND ended_at IS NULL`,
		`UPDATE kappactl.job SET dropping_at = clock_timestamp(), live = NULL WHERE name = @job`,
	} {
		if _, err := tx.Exec(ctx, sql, args); err != nil {
			return fmt.Errorf("mark %s as dropped: %w", j.Name, err)
		}
	}
	return nil
}

// forgetJob deletes the job's rows, but not its history nor its requests, and says what stays in the database.
func forgetJob(ctx context.Context, tx *pg.Tx, j jobRow, by string) (kept []string, err error) {
	args := pgx.NamedArgs{"job": j.Name, "view": quoted(j.view()), "by": by}
	rows, err := tx.Query(ctx, `SELECT number FROM kappactl.version WHERE job = @job AND keep_table ORDER BY number`, args)
	if err != nil {
		return nil, fmt.Errorf("read kept tables of %s: %w", j.Name, err)
	}
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil, fmt.Errorf("read kept tables of %s: %w", j.Name, err)
	}
	for _, n := range numbers {
		kept = append(kept, "table "+quoted(job.ViewName{Schema: j.ViewSchema, Name: job.Ref{Job: job.Name(j.Name), Number: job.Number(n)}.Table()}))
	}
	for _, sql := range []string{
		`INSERT INTO kappactl.dropped_job (name, next_number, view, kept_view, by)
			SELECT name, next_number, @view, coalesce((SELECT (e.detail ->> 'keep_view')::boolean FROM kappactl.event e
				WHERE e.job = @job AND e.kind = 'drop' ORDER BY e.id DESC LIMIT 1), false), @by
			FROM kappactl.job WHERE name = @job
			ON CONFLICT (name) DO UPDATE SET next_number = excluded.next_number, view = excluded.view, kept_view = excluded.kept_view,
				at = clock_timestamp(), by = excluded.by`,
		`DELETE FROM kappactl.observation WHERE job = @job`,
		`DELETE FROM kappactl.accepted_gap WHERE job = @job`,
		`DELETE FROM kappactl.job WHERE name = @job`, // versions, deployments, positions, segments and dead letters go with it
	} {
		if _, err := tx.Exec(ctx, sql, args); err != nil {
			return nil, fmt.Errorf("forget %s: %w", j.Name, err)
		}
	}
	return kept, nil
}

// keptBy is the dropped job that left a view of this name behind; empty when none did.
func keptBy(ctx context.Context, db pg.DB, j jobRow) (string, error) {
	var name string
	err := db.QueryRow(ctx, `SELECT coalesce(max(name), '') FROM kappactl.dropped_job WHERE kept_view AND view = @view`,
		pgx.NamedArgs{"view": quoted(j.view())}).Scan(&name)
	return name, wrap(err, "look for the job that left %s", j.view())
}

// Dropped is a job that is no more.
type Dropped struct {
	View     string
	KeptView bool
	At       time.Time
	By       string
}

// Dropped says when a job that is not there was dropped; nil when there never was one, or it is there.
func (s *Store) Dropped(ctx context.Context, name job.Name) (*Dropped, error) {
	var d Dropped
	err := s.pool.QueryRow(ctx, `SELECT view, kept_view, at, by FROM kappactl.dropped_job d WHERE name = @job
		AND NOT EXISTS (SELECT 1 FROM kappactl.job j WHERE j.name = d.name)`, pgx.NamedArgs{"job": string(name)}).Scan(&d.View, &d.KeptView, &d.At, &d.By)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // never dropped
	}
	if err != nil {
		return nil, fmt.Errorf("look for a dropped job %s: %w", name, err)
	}
	return &d, nil
}
