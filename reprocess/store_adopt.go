package reprocess

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// jobsOf are the jobs that have the name or serve the view.
func jobsOf(ctx context.Context, db pg.DB, name job.Name, view job.ViewName) ([]jobRow, error) {
	rows, err := collect[jobRow](ctx, db, `SELECT `+jobColumns+` FROM kappactl.job
		WHERE name = @job OR (view_schema = @schema AND view_name = @view) ORDER BY name <> @job`,
		pgx.NamedArgs{"job": string(name), "schema": view.Schema, "view": view.Name})
	return rows, wrap(err, "look up job %s and view %s", name, view)
}

// insertAdopted writes the job, version 0, which is live from here on, and its deployment, which has ended.
func insertAdopted(ctx context.Context, tx *pg.Tx, a job.Adoption, by string) (deployment int64, err error) {
	spec, err := json.Marshal(job.Spec{Job: a.To.Job, Mode: job.Kappa, Serve: job.Serve{View: a.View}, KeepOld: adoptedKeep, AutoRetire: true})
	if err != nil {
		return 0, fmt.Errorf("encode spec: %w", err)
	}
	layout, err := json.Marshal(a.Layout())
	if err != nil {
		return 0, fmt.Errorf("encode layout: %w", err)
	}
	in := Staging{Spec: &job.Spec{Job: a.To.Job, Serve: job.Serve{View: a.View}}}
	if err := insertJob(ctx, tx, in); err != nil {
		return 0, err
	}
	args := pgx.NamedArgs{"job": string(a.To.Job), "spec": string(spec), "layout": string(layout), "reason": adoptedReason, "by": by}
	_, err = tx.Exec(ctx, `INSERT INTO kappactl.version (job, number, hash, spec, layout, dialect, engine, phase, verdict, reason, keep_table, created_by)
		VALUES (@job, 0, 'adopted', @spec::jsonb, @layout::jsonb, 0, '', 'live', 'unknown', @reason, true, @by)`, args)
	if err != nil {
		return 0, fmt.Errorf("write the adopted version: %w", err)
	}
	err = tx.QueryRow(ctx, `INSERT INTO kappactl.deployment (job, number, flip_only, promote, state, promoted_at, ended_at, created_by)
		VALUES (@job, 0, true, 'manual', 'settled', clock_timestamp(), clock_timestamp(), @by) RETURNING id`, args).Scan(&deployment)
	return deployment, wrap(err, "write the deployment of %s", a.To)
}
