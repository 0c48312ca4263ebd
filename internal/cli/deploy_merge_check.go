package cli

import (
	"context"
	"time"
)

const (
	// deployMergeRounds is the number of random splits that deploy tries; check tries more.
	deployMergeRounds = 3
	// deployMergeTime bounds the merge check of deploy.
	deployMergeTime = 20 * time.Second
)

// mergeable refuses a job that fails the merge check on a sample of the topic. A check that cannot run does not refuse
// it.
func (o deployOptions) mergeable(ctx context.Context, c *compiled) error {
	limited, cancel := context.WithTimeout(ctx, deployMergeTime)
	defer cancel()
	check := checkOptions{app: o.app, file: o.file, seed: 1, rounds: deployMergeRounds}
	m, _ := check.mergeCheck(limited, c) // staging reports SQL that PostgreSQL refuses
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case m.Report != nil && !m.Passed:
		return check.verdict(checkResult{MergeCheck: m}, nil)
	}
	return nil
}
