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

// PastCheck is the last answer of a check of a deployment.
type PastCheck struct {
	Name       string
	Definition string // the check as JSON, as it was in the job file when it ran
	Outcome    string
	Detail     reason.Reason
	Failures   int // in a row
	At         time.Time
}

// ReadChecks reads the last answers of a deployment's checks in a stage.
func ReadChecks(ctx context.Context, db pg.DB, deployment int64, stage string) ([]PastCheck, error) {
	found, err := pg.Structs[PastCheck](ctx, db, `SELECT name, definition::text AS definition, outcome, detail, failures, at
		FROM kappactl.check_result WHERE deployment = @id AND stage = @stage ORDER BY name`,
		pgx.NamedArgs{"id": deployment, "stage": stage})
	return found, Wrap(err, "read the checks of deployment %d", deployment)
}

// CheckAnswer is the answer of one check of a run.
type CheckAnswer struct {
	Check   job.Check
	Outcome string
	Detail  reason.Reason
	Seconds float64
	Diff    any // stored as JSON; nil: none
}

// WriteChecks writes the answers of a run at some offsets, and how often in a row each check failed. A check with
// another definition is counted from the beginning.
func WriteChecks(ctx context.Context, tx *pg.Tx, st *State, stage string, at map[string]int64,
	answers []CheckAnswer,
) error {
	for _, a := range answers {
		args := pgx.NamedArgs{
			"id": st.ID, "job": st.Job, "number": st.Number, "name": a.Check.Name, "stage": stage, "outcome": a.Outcome,
			"seconds": a.Seconds, "diff": nil,
		}
		values := map[string]any{"definition": a.Check, "detail": a.Detail, "positions": at}
		if a.Diff != nil {
			values["diff"] = a.Diff
		}
		for name, v := range values {
			text, err := json.Marshal(v)
			if err != nil {
				return fmt.Errorf("encode the %s of check %q: %w", name, a.Check.Name, err)
			}
			args[name] = string(text)
		}
		if _, err := tx.Exec(ctx, writeCheck, args); err != nil {
			return fmt.Errorf("write the result of check %q: %w", a.Check.Name, err)
		}
	}
	return nil
}

const writeCheck = `INSERT INTO kappactl.check_result AS t
		(deployment, job, number, name, stage, definition, outcome, detail, seconds, positions, diff, failures)
	VALUES (@id, @job, @number, @name, @stage, @definition::jsonb, @outcome, @detail::jsonb, @seconds,
		coalesce(nullif(@positions::jsonb, 'null'), '{}'), @diff::jsonb, CASE WHEN @outcome::text = 'fail' THEN 1 ELSE 0 END)
	ON CONFLICT (deployment, name, stage) DO UPDATE SET definition = excluded.definition, outcome = excluded.outcome,
		detail = excluded.detail, seconds = excluded.seconds, positions = excluded.positions, diff = excluded.diff,
		at = clock_timestamp(), runs = t.runs + 1,
		failures = CASE WHEN t.definition <> excluded.definition THEN excluded.failures
			WHEN excluded.outcome = 'fail' THEN t.failures + 1 WHEN excluded.outcome = 'pass' THEN 0 ELSE t.failures END`

// forgetChecks deletes what the checks before the flip said of a deployment that was compared with another version than
// live.
func forgetChecks(ctx context.Context, tx *pg.Tx, deployment int64, live *int) error {
	_, err := tx.Exec(ctx, `DELETE FROM kappactl.check_result c USING kappactl.deployment d
		WHERE d.id = @id AND c.deployment = d.id AND c.stage = 'before' AND d.previous IS DISTINCT FROM @live::integer`,
		pgx.NamedArgs{"id": deployment, "live": live})
	return Wrap(err, "forget the checks of deployment %d", deployment)
}
