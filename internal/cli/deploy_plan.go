package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/speedlayer"
)

// dry prints the plan that deploy would carry out, or ends with what would refuse it.
func (o deployOptions) dry(ctx context.Context, cl *client, s plan.Staging) error {
	admin, _, err := cl.admin(ctx)
	if err != nil {
		return err
	}
	defer admin.Close()
	p, err := cl.store.Plan(ctx, s, plan.Sources{
		Brokers: admin, History: cl.history(admin, s.Spec),
		Positions: speedlayer.Store{},
	}, o.sys.Now())
	if err != nil {
		return o.named(err)
	}
	if len(p.Refusals) > 0 {
		return o.named(p.Refusals[0])
	}
	result := deployResult{
		Job: s.Spec.Job, Version: p.Number.String(), Phase: p.Phase, DryRun: true, Nothing: p.Nothing, Resumed: p.Resumed,
		Applied: p.Applied,
		Message: planned(p, s),
	}
	if result.Nothing && o.detailedExitCode {
		result.ExitCode = job.ExitNothing
	}
	for _, w := range p.Warnings {
		o.progress("warning: %s", w.Text())
	}
	if err := o.alone(result); err != nil {
		return err
	}
	return exitWith(result.ExitCode)
}

// planned describes a plan in one line.
func planned(p plan.Deploy, s plan.Staging) string {
	switch planAction(p) {
	case "nothing":
		return fmt.Sprintf("%s %s is live already: nothing to do", p.Job, p.Number)
	case "apply":
		return fmt.Sprintf("%s %s would stay live; would be applied in place: %s", p.Job, p.Number,
			strings.Join(p.Applied, ", "))
	case "flip":
		return fmt.Sprintf("would verify %s %s, which is standby: nothing is replayed", p.Job, p.Number)
	case "resume":
		return fmt.Sprintf("would go on with %s %s, which is %s", p.Job, p.Number, p.Phase)
	}
	if p.Live == nil {
		return fmt.Sprintf("would stage %s as its first version (%s) and replay from %s", p.Job, s.Hash, s.Spec.Replay.Start)
	}
	return fmt.Sprintf("would stage %s %s (%s) beside %s and replay from %s", p.Job, p.Number, s.Hash, p.Live.Number,
		s.Spec.Replay.Start)
}
