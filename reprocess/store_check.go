package reprocess

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// pastCheck is a row of kappactl.check_result: what a check of a deployment said last.
type pastCheck struct {
	Name       string
	Definition string
	Outcome    CheckOutcome
	Detail     string
	Failures   int
	At         time.Time
}

// is says that the row is of this check as it stands in the file now.
func (p pastCheck) is(k job.Check) bool {
	var was job.Check
	if p.Name != k.Name || json.Unmarshal([]byte(p.Definition), &was) != nil {
		return false
	}
	a, err := json.Marshal(was)
	if err != nil {
		return false
	}
	b, err := json.Marshal(k)
	return err == nil && string(a) == string(b)
}

// readChecks are what the checks of a deployment said last in a stage.
func readChecks(ctx context.Context, db pg.DB, deployment int64, stage string) ([]pastCheck, error) {
	found, err := collect[pastCheck](ctx, db, `SELECT name, definition::text AS definition, outcome, detail, failures, at FROM kappactl.check_result
		WHERE deployment = @id AND stage = @stage ORDER BY name`, pgx.NamedArgs{"id": deployment, "stage": stage})
	return found, wrap(err, "read the checks of deployment %d", deployment)
}

// checkedSince says whether the checks that gate the flip passed within age, as they stand in the file now.
func checkedSince(ctx context.Context, db pg.DB, st *state, age time.Duration) (bool, error) {
	past, err := readChecks(ctx, db, st.ID, job.CheckBefore)
	if err != nil {
		return false, err
	}
	for _, k := range dueIn(st.spec.Checks, job.CheckBefore) {
		fresh := false
		for _, p := range past {
			fresh = fresh || p.is(k) && p.Outcome == CheckPass && st.Now.Sub(p.At) < age
		}
		if !fresh {
			return false, nil
		}
	}
	return true, nil
}

// writeResults notes what each check of a run said, and how often in a row it failed; another definition begins anew.
func writeResults(ctx context.Context, tx *pg.Tx, r *checkRun) error {
	at, err := json.Marshal(r.at)
	if err != nil {
		return fmt.Errorf("encode positions: %w", err)
	}
	for i, result := range r.results {
		definition, err := json.Marshal(r.due[i])
		if err != nil {
			return fmt.Errorf("encode check %q: %w", result.Name, err)
		}
		var diff *string
		if result.Diff != nil {
			b, err := json.Marshal(result.Diff)
			if err != nil {
				return fmt.Errorf("encode the diff of check %q: %w", result.Name, err)
			}
			text := string(b)
			diff = &text
		}
		_, err = tx.Exec(ctx, `INSERT INTO kappactl.check_result AS t (deployment, job, number, name, stage, definition, outcome, detail, seconds, positions, diff, failures)
			VALUES (@id, @job, @number, @name, @stage, @definition::jsonb, @outcome, @detail, @seconds, coalesce(nullif(@positions::jsonb, 'null'), '{}'), @diff::jsonb,
				CASE WHEN @outcome::text = 'fail' THEN 1 ELSE 0 END)
			ON CONFLICT (deployment, name, stage) DO UPDATE SET definition = excluded.definition, outcome = excluded.outcome, detail = excluded.detail,
				seconds = excluded.seconds, positions = excluded.positions, diff = excluded.diff, at = clock_timestamp(), runs = t.runs + 1,
				failures = CASE WHEN t.definition <> excluded.definition THEN excluded.failures WHEN excluded.outcome = 'fail' THEN t.failures + 1
					WHEN excluded.outcome = 'pass' THEN 0 ELSE t.failures END`,
			pgx.NamedArgs{
				"id": r.st.ID, "job": r.st.Job, "number": r.st.Number, "name": result.Name, "stage": r.stage, "definition": string(definition),
				"outcome": string(result.Outcome), "detail": result.Detail, "seconds": result.Seconds, "positions": string(at), "diff": diff,
			})
		if err != nil {
			return fmt.Errorf("write the result of check %q: %w", result.Name, err)
		}
	}
	return nil
}

// setMessage says beside a deployment's state what a person should know; it ends nothing.
func setMessage(ctx context.Context, tx *pg.Tx, st *state, text, next string) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET message = @text, next_command = @next WHERE id = @id AND claim = @claim AND ended_at IS NULL`,
		pgx.NamedArgs{"id": st.ID, "claim": st.claim, "text": text, "next": next})
	return wrap(err, "note on deployment %d", st.ID)
}
