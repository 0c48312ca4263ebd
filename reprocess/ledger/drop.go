package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// DroppedRow is a version of which something is left.
type DroppedRow struct {
	Number    int
	Phase     job.Phase
	KeepTable bool
	Lambda    bool // of mode lambda
	Verdict   job.Verdict
	Reason    reason.Reason
}

// Version is the row's version, with what of its layout names its tables.
func (r DroppedRow) Version(j JobRow) job.Version {
	return job.Version{
		Ref: job.Ref{Job: job.Name(j.Name), Number: job.Number(r.Number)}, Schema: j.ViewSchema,
		Layout: job.Layout{Lambda: r.Lambda},
	}
}

const isLambda = `coalesce((layout ->> 'lambda')::boolean, false) AS lambda`

const droppedColumns = `SELECT number, phase, keep_table, ` + isLambda + `, verdict, reason
	FROM kappactl.version WHERE job = @job AND ended_at IS NULL ORDER BY number`

// ReadDropped lists the versions of a job that have not ended, oldest first.
func ReadDropped(ctx context.Context, db pg.DB, name job.Name) ([]DroppedRow, error) {
	rows, err := pg.Structs[DroppedRow](ctx, db, droppedColumns, pgx.NamedArgs{"job": string(name)})
	return rows, Wrap(err, "read versions of %s", name)
}

// LockDropped is readDropped that keeps their controllers from moving them.
func LockDropped(ctx context.Context, tx *pg.Tx, name job.Name) ([]DroppedRow, error) {
	rows, err := pg.Structs[DroppedRow](ctx, tx, droppedColumns+` FOR UPDATE`, pgx.NamedArgs{"job": string(name)})
	return rows, Wrap(err, "lock versions of %s", name)
}

// MarkDropping closes the job's deployments and notes that it is being dropped and which table stays.
func MarkDropping(ctx context.Context, tx *pg.Tx, j JobRow, keepView bool) error {
	args := moveArgs(JobDropped, Answer{Reason: reason.JobDropping()},
		pgx.NamedArgs{"job": j.Name, "keep": keepView, "live": j.Live})
	for _, sql := range []string{
		`UPDATE kappactl.version SET keep_table = true WHERE job = @job AND @keep::boolean AND number = @live::integer`,
		moved("", `d.job = @job`),
		`UPDATE kappactl.job SET dropping_at = clock_timestamp(), live = NULL WHERE name = @job`,
	} {
		if _, err := tx.Exec(ctx, sql, args); err != nil {
			return fmt.Errorf("mark %s as dropped: %w", j.Name, err)
		}
	}
	return nil
}

// ForgetJob deletes the job's rows, but not its history nor its requests, and says what stays in the database.
func ForgetJob(ctx context.Context, tx *pg.Tx, j JobRow, by string) (kept []string, err error) {
	args := pgx.NamedArgs{"job": j.Name, "view": QuotedView(j.View()), "by": by}
	rows, err := pg.Structs[struct {
		Number int
		Lambda bool
	}](ctx, tx, `SELECT number, `+isLambda+` FROM kappactl.version WHERE job = @job AND keep_table ORDER BY number`, args)
	if err != nil {
		return nil, fmt.Errorf("read kept tables of %s: %w", j.Name, err)
	}
	for _, r := range rows {
		for _, name := range (DroppedRow{Number: r.Number, Lambda: r.Lambda}).Version(j).Tables() {
			kept = append(kept, "table "+QuotedView(job.ViewName{Schema: j.ViewSchema, Name: name}))
		}
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

// KeptBy is the dropped job that left a view of this name behind; empty when none did.
func KeptBy(ctx context.Context, db pg.DB, j JobRow) (string, error) {
	var name string
	err := db.QueryRow(ctx, `SELECT coalesce(max(name), '') FROM kappactl.dropped_job WHERE kept_view AND view = @view`,
		pgx.NamedArgs{"view": QuotedView(j.View())}).Scan(&name)
	return name, Wrap(err, "look for the job that left %s", j.View())
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
