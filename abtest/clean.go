package abtest

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/retry"
)

// needsCleaning selects runs that ended so long ago that their subjects are deleted. Decisions, counts and guardrails
// stay.
const needsCleaning = `r.ended_at < clock_timestamp() - interval '90 days' AND (
	EXISTS (SELECT 1 FROM kappactl.assignment a WHERE a.job = r.job AND a.run = r.run)
	OR EXISTS (SELECT 1 FROM kappactl.reward w WHERE w.job = r.job AND w.run = r.run))`

// cleanAtOnce is how many rows one statement deletes.
const cleanAtOnce = 10_000

// Clean deletes the assignments and rewards of a run that ended long ago. It returns when there are none left, the
// claim is lost or ctx ends.
func (r *Runner) Clean(ctx context.Context, id, claim int64) error {
	for {
		rows := int64(0)
		for _, table := range []string{"reward", "assignment"} {
			tag, err := r.Pool.Exec(ctx, `DELETE FROM kappactl.`+table+` WHERE ctid = ANY (ARRAY(
				SELECT t.ctid FROM kappactl.`+table+` t JOIN kappactl.experiment r USING (job, run)
				WHERE r.id = @id AND r.claim = @claim AND r.ended_at IS NOT NULL LIMIT @most))`,
				pgx.NamedArgs{"id": id, "claim": claim, "most": cleanAtOnce})
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return fmt.Errorf("delete the subjects of an experiment: %w", err)
			}
			rows += tag.RowsAffected()
		}
		if rows == 0 || retry.Sleep(ctx, r.config.RetryEvery) != nil {
			return nil
		}
	}
}
