package abtest

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/abtest/judge"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// Comparison is what an experiment has found out so far.
type Comparison struct {
	Mode      job.ABMode      `json:"mode"`
	Estimates judge.Estimates `json:"estimates"`
	// Next is what the next look comes to with the numbers of now; empty when the run has ended.
	Next       judge.Verdict `json:"next"`
	NextReason string        `json:"next_reason"`
	NextCode   reason.Code   `json:"next_reason_code"`
	Guards     []GuardStatus `json:"guardrails"`
	Rewards    *RewardStatus `json:"rewards"` // null without rewards
}

// GuardStatus is a guardrail after its last look.
type GuardStatus struct {
	Name     string              `json:"name"`
	Action   job.GuardrailAction `json:"action"`
	State    string              `json:"state"` // pass, fail, no_data or error; empty before the first look
	Breached bool                `json:"breached"`
	Reason   string              `json:"reason"`
	Code     reason.Code         `json:"reason_code"`
	SeenAt   *time.Time          `json:"seen_at"`
}

// RewardStatus is how rewards have come in.
type RewardStatus struct {
	Source    string               `json:"source"`
	Counts    map[RewardCode]int64 `json:"counts"`
	Watermark *time.Time           `json:"watermark"` // read up to; null: they are reported as they happen
	ReadAt    *time.Time           `json:"read_at"`
	Trouble   string               `json:"trouble"`
	Code      reason.Code          `json:"trouble_code"`
}

// compared reads what a run has found out; nil when it is not looked at.
func compared(ctx context.Context, tx *pg.Tx, e *row) (*Comparison, error) {
	if !e.Settings.Watched() {
		return nil, nil //nolint:nilnil // no comparison is not an error
	}
	now, err := databaseTime(ctx, tx)
	if err != nil {
		return nil, err
	}
	in, err := readInputs(ctx, tx, e, now, false)
	if err != nil {
		return nil, err
	}
	out := &Comparison{Mode: e.Settings.By(), Estimates: judge.Estimate(e.Settings, in), Guards: []GuardStatus{}}
	if e.State != Ended {
		next := judge.Judge(e.Settings, in)
		out.Next, out.NextReason, out.NextCode = next.Verdict, next.Reason.Text(), next.Reason.Code
	}
	rows, err := guardRows(ctx, tx, e)
	if err != nil {
		return nil, err
	}
	for _, g := range e.Settings.Guardrails {
		s := GuardStatus{Name: g.Name, Action: g.Action}
		for _, r := range rows {
			if r.Name == g.Name {
				s.State, s.Breached, s.Reason, s.Code, s.SeenAt = r.State, r.Breached, r.Reason.Text(), r.Reason.Code,
					inUTC(r.SeenAt)
			}
		}
		out.Guards = append(out.Guards, s)
	}
	out.Rewards, err = rewardStatus(ctx, tx, e)
	return out, err
}

func inUTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	at := t.UTC()
	return &at
}

func rewardStatus(ctx context.Context, tx *pg.Tx, e *row) (*RewardStatus, error) {
	if e.Settings.Reward == nil {
		return nil, nil //nolint:nilnil // no rewards are not an error
	}
	type state struct {
		Counts    map[RewardCode]int64
		Watermark *time.Time
		ReadAt    *time.Time
		Trouble   reason.Reason
	}
	found, err := pg.Structs[state](ctx, tx,
		`SELECT counts, watermark, read_at, trouble FROM kappactl.reward_source WHERE job = @job AND run = @run`,
		pgx.NamedArgs{"job": e.Job, "run": e.Run})
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("read the rewards of %s: %w", e.Job, err)
	}
	s := found[0]
	return &RewardStatus{
		Source: e.Settings.Reward.Source.Name(), Counts: s.Counts, Watermark: inUTC(s.Watermark), ReadAt: inUTC(s.ReadAt),
		Trouble: s.Trouble.Text(),
		Code:    s.Trouble.Code,
	}, nil
}
