package abtest

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// coursePoints is how many points a Curve has at most.
const coursePoints = 60

// Curve is the mean reward of an arm in the course of a run.
type Curve struct {
	Version string       `json:"version"`
	Points  []CurvePoint `json:"points"`
}

// CurvePoint is the mean over the subjects that had been exposed by a time, as far as their window is over now.
type CurvePoint struct {
	At       time.Time `json:"at"`
	Subjects int64     `json:"subjects"`
	Mean     float64   `json:"mean"`
}

// readCurves adds up the rewards of the subjects whose window and grace are over, in the order of their exposure.
func (c Course) readCurves(ctx context.Context, tx *pg.Tx, r *job.Reward) ([]Curve, error) {
	if r == nil {
		return nil, nil
	}
	type sum struct {
		Arm   string
		Slot  int
		N     int64
		Total float64
	}
	span := max(c.End().Sub(c.StartedAt).Seconds(), 0.001)
	args := pgx.NamedArgs{
		"job": string(c.Job), "run": c.Run, "start": c.StartedAt, "span": span, "points": coursePoints,
		"window": pg.Interval(r.Window + r.Grace),
		"lo":     math.Inf(-1), "hi": math.Inf(1),
	}
	if r.Clip != nil && r.Kind == job.Gaussian {
		args["lo"], args["hi"] = r.Clip[0], r.Clip[1]
	}
	found, err := pg.Structs[sum](ctx, tx, `SELECT a.arm, count(*) AS n, sum(least(greatest(a.reward, @lo), @hi)) AS total,
			least(@points, width_bucket(extract(epoch FROM a.exposed_at - @start::timestamptz), 0, @span::numeric, @points)) AS slot
		FROM kappactl.assignment a JOIN kappactl.reward_source s USING (job, run)
		WHERE a.job = @job AND a.run = @run AND NOT a.crossed AND a.exposed_at + @window::interval <= coalesce(s.watermark, clock_timestamp())
		GROUP BY a.arm, slot ORDER BY slot`, args)
	if err != nil {
		return nil, fmt.Errorf("read the rewards of %s: %w", c.Job, err)
	}
	out := make([]Curve, len(c.Arms))
	for i, a := range c.Arms {
		out[i] = Curve{Version: a.Version, Points: []CurvePoint{}}
		n, total := int64(0), 0.0
		for _, s := range found {
			if s.Arm == a.Version {
				n, total = n+s.N, total+s.Total
				at := c.StartedAt.Add(time.Duration(span * float64(s.Slot) / coursePoints * float64(time.Second)))
				out[i].Points = append(out[i].Points, CurvePoint{At: at, Subjects: n, Mean: total / float64(n)})
			}
		}
	}
	return out, nil
}

// MeansOver are the mean rewards of the arms, in their order, at n moments from the start of the run to its end; NaN
// before the first subject whose window is over.
func (c Course) MeansOver(n int) [][]float64 {
	out := make([][]float64, len(c.Curves))
	span := c.End().Sub(c.StartedAt)
	for i, curve := range c.Curves {
		out[i] = make([]float64, n)
		for k := range n {
			at := c.StartedAt.Add(span * time.Duration(k+1) / time.Duration(n))
			out[i][k] = math.NaN()
			for _, p := range curve.Points {
				if !p.At.After(at) {
					out[i][k] = p.Mean
				}
			}
		}
	}
	return out
}
