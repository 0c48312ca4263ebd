package abtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/abtest/policy"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// readTallies adds up the rewards of the subjects whose window and grace are over at a moment, by epoch (from 1 on) and
// arm. A subject that has read two arms is in none.
func readTallies(ctx context.Context, db pg.DB, r *row, clock time.Time) ([][]policy.Tally, error) {
	out := make([][]policy.Tally, r.Epoch)
	for i := range out {
		out[i] = make([]policy.Tally, len(r.Arms))
	}
	if r.Settings.Reward == nil {
		return out, nil
	}
	type sum struct {
		Epoch            int
		Arm              string
		N, Total, Square float64
	}
	value := "a.reward"
	args := pgx.NamedArgs{
		"job": r.Job, "run": r.Run, "clock": clock,
		"span": pg.Interval(r.Settings.Reward.Window + r.Settings.Reward.Grace),
	}
	if c := r.Settings.Reward.Clip; c != nil && r.Settings.Reward.Kind == job.Gaussian {
		value = "least(greatest(a.reward, @lo), @hi)"
		args["lo"], args["hi"] = c[0], c[1]
	}
	found, err := pg.Structs[sum](ctx, db, `SELECT epoch, arm, count(*)::double precision AS n, sum(v) AS total, sum(v * v) AS square
		FROM (SELECT a.epoch, a.arm, `+value+` AS v FROM kappactl.assignment a
			WHERE a.job = @job AND a.run = @run AND a.exposed_at + @span::interval <= @clock AND NOT a.crossed) q
		GROUP BY epoch, arm`, args)
	if err != nil {
		return nil, fmt.Errorf("add up the rewards of %s: %w", r.Job, err)
	}
	for _, s := range found {
		if arm := slices.Index(r.Arms, s.Arm); arm >= 0 && s.Epoch >= 1 && s.Epoch <= len(out) {
			out[s.Epoch-1][arm] = policy.Tally{N: s.N, Sum: s.Total, Squares: s.Square}
		}
	}
	return out, nil
}
