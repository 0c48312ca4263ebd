package abtest

import (
	"context"
	"slices"
	"time"

	"github.com/kappactl/kappactl/abtest/judge"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Course is how the newest experiment of a job went so far.
type Course struct {
	Status
	Now       time.Time  `json:"now"`       // of the database
	Decisions []Decision `json:"decisions"` // of the run, the oldest first
	Curves    []Curve    `json:"curves"`    // of the arms, in their order; null without rewards
}

// Course reads the course of the newest experiment of a job. A job that has had none is a refusal.
func (s Store) Course(ctx context.Context, pool *pg.Pool, name job.Name) (out Course, err error) {
	err = pool.Snapshot(ctx, func(tx *pg.Tx) error {
		if out.Status, err = readStatus(ctx, tx, name); err != nil {
			return err
		}
		all, err := s.Decisions(ctx, tx, name)
		if err != nil {
			return err
		}
		out.Decisions = slices.DeleteFunc(all, func(d Decision) bool { return d.Run != out.Run })
		slices.Reverse(out.Decisions)
		if err := tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&out.Now); err != nil {
			return err
		}
		r, err := newest(ctx, tx, name)
		if err != nil {
			return err
		}
		out.Curves, err = out.readCurves(ctx, tx, r.Settings.Reward)
		return err
	})
	out.Now = out.Now.UTC()
	return out, err
}

// End is the end of the run, or now.
func (c Course) End() time.Time {
	if c.EndedAt != nil {
		return *c.EndedAt
	}
	return c.Now
}

// WeightsOver are the weights of the arms, in their order, at n moments from the start of the run to its end. During a
// pause every reader reads the control.
func (c Course) WeightsOver(n int) [][]float64 {
	out := make([][]float64, len(c.Arms))
	for i := range out {
		out[i] = make([]float64, n)
	}
	span := c.End().Sub(c.StartedAt)
	for k := range n {
		at := c.StartedAt.Add(span)
		if k < n-1 {
			at = c.StartedAt.Add(span * time.Duration(k) / time.Duration(n-1))
		}
		for i, w := range c.weightsAt(at) {
			out[i][k] = w
		}
	}
	return out
}

// weightsAt are the weights after the last decision that was made by then; before the first one they are its own.
func (c Course) weightsAt(at time.Time) []float64 {
	out, paused := make([]float64, len(c.Arms)), false
	for k, d := range c.Decisions {
		if k > 0 && d.At.After(at) {
			break
		}
		switch d.Verdict { // looks of a pause change nothing
		case Stopped, Verdict(judge.Rollback):
			paused = true
		case Resumed:
			paused = false
		case Over: // the view reads the live version, but the run had these
			continue
		case Started, Weighed:
		}
		for i, a := range c.Arms {
			out[i] = 0
			if paused && a.Control {
				out[i] = 1
			}
			for _, w := range d.Weights {
				if w.Version == a.Version && !paused {
					out[i] = w.Weight
				}
			}
		}
	}
	return out
}
