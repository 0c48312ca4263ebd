package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// UniqueViolation is the SQLSTATE of a value that another row has.
const UniqueViolation = pgerrcode.UniqueViolation

// JobRow is a row of kappactl.job.
type JobRow struct {
	Name         string
	ClusterID    string
	ViewSchema   string
	ViewName     string
	Live         *int
	ContractJSON *string
	DroppingAt   *time.Time
}

// View is the job's serving view.
func (j JobRow) View() job.ViewName { return job.ViewName{Schema: j.ViewSchema, Name: j.ViewName} }

// Contract is the contract of the serving view as JSON, nil before the first flip.
func (j JobRow) Contract() json.RawMessage {
	if j.ContractJSON == nil {
		return nil
	}
	return json.RawMessage(*j.ContractJSON)
}

// JobColumns are the columns of a JobRow.
const JobColumns = `name, cluster_id, view_schema, view_name, live, contract::text AS contract_json, dropping_at`

// LockJob locks and reads a job's row; an unknown job is a refusal.
func LockJob(ctx context.Context, tx *pg.Tx, name job.Name) (JobRow, error) {
	rows, err := tx.Query(ctx, `SELECT `+JobColumns+` FROM kappactl.job WHERE name = @job FOR UPDATE`,
		pgx.NamedArgs{"job": string(name)})
	if err != nil {
		return JobRow{}, fmt.Errorf("lock job %s: %w", name, err)
	}
	j, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[JobRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return JobRow{}, UnknownJob(ctx, tx, name)
	}
	if err != nil {
		return JobRow{}, fmt.Errorf("lock job %s: %w", name, err)
	}
	return j, nil
}

// jobNames are the names of all jobs.
func jobNames(ctx context.Context, db pg.DB) ([]string, error) {
	rows, err := db.Query(ctx, `SELECT name FROM kappactl.job ORDER BY name`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// InsertJob makes the job's row unless it is there, and notes the cluster when none was noted.
func InsertJob(ctx context.Context, tx *pg.Tx, spec *job.Spec, clusterID string) error {
	_, err := tx.Exec(ctx, `INSERT INTO kappactl.job (name, team, cluster_id, view_schema, view_name, next_number)
		VALUES (@job, @team, @cluster, @schema, @view, coalesce((SELECT next_number FROM kappactl.dropped_job WHERE name = @job), 1))
		ON CONFLICT (name) DO UPDATE SET team = excluded.team,
			cluster_id = CASE kappactl.job.cluster_id WHEN '' THEN excluded.cluster_id ELSE kappactl.job.cluster_id END`,
		pgx.NamedArgs{
			"job": string(spec.Job), "team": spec.Team, "cluster": clusterID,
			"schema": spec.Serve.View.Schema, "view": spec.Serve.View.Name,
		})
	if err != nil {
		return fmt.Errorf("write job: %w", err)
	}
	return nil
}

// ViewOwner is the name of the job that serves a view, empty when none does.
func ViewOwner(ctx context.Context, db pg.DB, v job.ViewName) (string, error) {
	var owner string
	err := db.QueryRow(ctx, `SELECT coalesce(max(name), '') FROM kappactl.job WHERE view_schema = @schema AND view_name = @view`,
		pgx.NamedArgs{"schema": v.Schema, "view": v.Name}).Scan(&owner)
	if err != nil {
		return "", fmt.Errorf("look up view %s: %w", v, err)
	}
	return owner, nil
}

// NextNumber takes the next version number of a job.
func NextNumber(ctx context.Context, tx *pg.Tx, name string) (int, error) {
	var n int
	err := tx.QueryRow(ctx, `UPDATE kappactl.job SET next_number = next_number + 1 WHERE name = @job RETURNING next_number - 1`,
		pgx.NamedArgs{"job": name}).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("take a version number: %w", err)
	}
	return n, nil
}

// JobsOf are the jobs that have the name or serve the view.
func JobsOf(ctx context.Context, db pg.DB, name job.Name, view job.ViewName) ([]JobRow, error) {
	rows, err := pg.Structs[JobRow](ctx, db, `SELECT `+JobColumns+` FROM kappactl.job
		WHERE name = @job OR (view_schema = @schema AND view_name = @view) ORDER BY name <> @job`,
		pgx.NamedArgs{"job": string(name), "schema": view.Schema, "view": view.Name})
	return rows, Wrap(err, "look up job %s and view %s", name, view)
}

// ReadJob reads a job without locking it.
func ReadJob(ctx context.Context, db pg.DB, name job.Name) (JobRow, error) {
	rows, err := pg.Structs[JobRow](ctx, db, `SELECT `+JobColumns+` FROM kappactl.job WHERE name = @job`,
		pgx.NamedArgs{"job": string(name)})
	if err != nil {
		return JobRow{}, fmt.Errorf("read job %s: %w", name, err)
	}
	if len(rows) == 0 {
		return JobRow{}, UnknownJob(ctx, db, name)
	}
	return rows[0], nil
}

// SetLive notes which version the view reads and the view's contract.
func SetLive(ctx context.Context, tx *pg.Tx, to job.Ref, contract json.RawMessage) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.job SET live = @number, contract = @contract::jsonb WHERE name = @job`,
		pgx.NamedArgs{"job": string(to.Job), "number": int(to.Number), "contract": string(contract)})
	return Wrap(err, "note %s as live", to)
}
