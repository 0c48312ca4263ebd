package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/reprocess"
)

type promoteOptions struct {
	*app
	target          target
	ignoreSnapshots bool
	liveIsDown      bool
	dryRun          bool
	waitAgent       duration
}

func newPromote(a *app, run func(context.Context, promoteOptions) error) *cobra.Command {
	o := promoteOptions{app: a}
	cmd := &cobra.Command{
		Use:   "promote JOB [VERSION]",
		Short: "Make the serving view read a verified version",
		Long: `Flip the serving view of the job to a version that is caught up, after its checks have passed at the same offsets
on both sides. Readers see one transaction. Without VERSION there must be only one candidate.`,
		Example:     "  kappactl promote pageviews\n  kappactl promote pageviews v2 --dry-run",
		Args:        between([]string{"JOB"}, []string{"VERSION"}),
		Annotations: map[string]string{timeoutKey: flipTimeout},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.target, err = parseTarget(cmd, args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.ignoreSnapshots, "ignore-snapshots", false, "flip although a reader with an older snapshot could see counters fall")
	f.BoolVar(&o.liveIsDown, "live-is-down", false, "flip without comparing: the live version has failed or is paused")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be done and do nothing")
	waitAgentFlag(f, &o.waitAgent)
	return cmd
}

func runPromote(ctx context.Context, o promoteOptions) error {
	return act{app: o.app, verb: reprocess.Promote, target: o.target, dryRun: o.dryRun, waitAgent: o.waitAgent.value, args: reprocess.Args{
		IgnoreSnapshots: o.ignoreSnapshots, LiveIsDown: o.liveIsDown,
	}}.run(ctx)
}
