package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

func newABPromote(a *app, run func(context.Context, actOptions) error) *cobra.Command {
	o := actOptions{app: a}
	cmd := o.command(&cobra.Command{
		Use:   "promote JOB VERSION",
		Short: "Make an arm live and end the experiment",
		Long: `Promote an arm of the running experiment, as promote does: with the checks, at the same offsets on both sides. The
experiment ends in the transaction of the flip.`,
		Example:     "  kappactl ab promote pageviews v2",
		Annotations: map[string]string{timeoutKey: flipTimeout},
	}, func(cmd *cobra.Command) error { return run(cmd.Context(), o) })
	cmd.Args = between([]string{"JOB", "VERSION"}, nil)
	a.yesFlag(cmd.Flags())
	return cmd
}

func runABPromote(ctx context.Context, o actOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := abtest.Store{}.Status(ctx, c.pool, o.target.Job)
	if err != nil {
		return err
	}
	ref := job.Ref{Job: o.target.Job, Number: *o.target.Number}
	arms := make([]string, len(s.Arms))
	for i, arm := range s.Arms {
		arms[i] = arm.Version
	}
	switch {
	case s.State == abtest.Ended:
		return ledger.RefuseFor(job.ExitConflict, "kappactl promote "+o.target.String(), reason.ABNone(ref.Job))
	case !slices.Contains(arms, ref.Number.String()):
		return ledger.RefuseFor(job.ExitConflict, "kappactl ab status "+string(ref.Job), reason.ABNoArm(ref, arms))
	}
	return o.act(ledger.Promote).run(ctx)
}
