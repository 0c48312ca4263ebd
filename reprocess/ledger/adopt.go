package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// adoptedKeep is the rollback window of an adopted version after the first promote: keep_old's default.
const adoptedKeep = 24 * time.Hour

// InsertAdopted writes the job, version 0, which is live from here on, and its deployment, which has ended.
func InsertAdopted(ctx context.Context, tx *pg.Tx, a job.Adoption, who Actor) (deployment int64, err error) {
	spec, err := json.Marshal(job.Spec{
		Job: a.To.Job, Mode: job.Kappa, Serve: job.Serve{View: a.View},
		KeepOld: adoptedKeep, AutoRetire: true,
	})
	if err != nil {
		return 0, fmt.Errorf("encode spec: %w", err)
	}
	layout, err := json.Marshal(a.Layout())
	if err != nil {
		return 0, fmt.Errorf("encode layout: %w", err)
	}
	if err := InsertJob(ctx, tx, &job.Spec{Job: a.To.Job, Serve: job.Serve{View: a.View}}, ""); err != nil {
		return 0, err
	}
	args := pgx.NamedArgs{
		"job": string(a.To.Job), "spec": string(spec), "layout": string(layout),
		"reason": reason.Adopted(), "by": who.By, "role": who.Role,
	}
	_, err = tx.Exec(ctx, `INSERT INTO kappactl.version (job, number, hash, spec, layout, dialect, engine, phase, verdict, reason, keep_table, created_by)
		VALUES (@job, 0, 'adopted', @spec::jsonb, @layout::jsonb, 0, '', 'live', 'unknown', @reason, true, @by)`, args)
	if err != nil {
		return 0, fmt.Errorf("write the adopted version: %w", err)
	}
	err = tx.QueryRow(ctx, `INSERT INTO kappactl.deployment (job, number, flip_only, promote, state, promoted_at, ended_at, created_by, session_role)
		VALUES (@job, 0, true, 'manual', 'settled', clock_timestamp(), clock_timestamp(), @by, coalesce(nullif(@role, ''), session_user)) RETURNING id`, args).Scan(&deployment)
	return deployment, Wrap(err, "write the deployment of %s", a.To)
}
