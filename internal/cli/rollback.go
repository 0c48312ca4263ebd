package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/reprocess"
)

type rollbackOptions struct {
	*app
	target          target
	stale           bool
	ignoreSnapshots bool
	dryRun          bool
	waitAgent       duration
}

func newRollback(a *app, run func(context.Context, rollbackOptions) error) *cobra.Command {
	o := rollbackOptions{app: a}
	cmd := &cobra.Command{
		Use:   "rollback JOB [VERSION]",
		Short: "Make the serving view read the standby version again",
		Long: `Flip the serving view back to the version that was live before. It has kept consuming, so nothing is lost. A standby
that has failed, was paused or has fallen behind needs --stale: readers then miss what came since.`,
		Example:     "  kappactl rollback pageviews\n  kappactl rollback pageviews v1 --stale",
		Args:        between([]string{"JOB"}, []string{"VERSION"}),
		Annotations: map[string]string{timeoutKey: flipTimeout},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.target, err = parseTarget(cmd, args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.ignoreSnapshots, "ignore-snapshots", false, "flip although a reader with an older snapshot could see counters fall")
	cmd.Flags().BoolVar(&o.stale, "stale", false, "accept a standby that no longer follows its topics")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "say what would be done and do nothing")
	waitAgentFlag(cmd.Flags(), &o.waitAgent)
	return cmd
}

func runRollback(ctx context.Context, o rollbackOptions) error {
	return act{app: o.app, verb: reprocess.Rollback, target: o.target, dryRun: o.dryRun, waitAgent: o.waitAgent.value, args: reprocess.Args{
		Stale: o.stale, IgnoreSnapshots: o.ignoreSnapshots,
	}}.run(ctx)
}
