package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/reprocess"
)

type pauseOptions struct {
	*app
	target    target
	dryRun    bool
	waitAgent duration
}

func newPause(a *app, run func(context.Context, pauseOptions) error) *cobra.Command {
	o := pauseOptions{app: a}
	cmd := &cobra.Command{
		Use:   "pause JOB [VERSION]",
		Short: "Stop the work of a version that is not live, for a while",
		Long: `Stop replaying or following the topics. Positions are kept; resume goes on exactly there. A live version cannot be
paused.`,
		Example: "  kappactl pause pageviews v2\n  kappactl resume pageviews v2",
		Args:    between([]string{"JOB"}, []string{"VERSION"}),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.target, err = parseTarget(cmd, args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "say what would be done and do nothing")
	waitAgentFlag(cmd.Flags(), &o.waitAgent)
	return cmd
}

func runPause(ctx context.Context, o pauseOptions) error {
	return act{app: o.app, verb: reprocess.Pause, target: o.target, dryRun: o.dryRun, waitAgent: o.waitAgent.value}.run(ctx)
}
