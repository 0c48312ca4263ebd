package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/reprocess"
)

type abortOptions struct {
	*app
	target    target
	dryRun    bool
	waitAgent duration
}

func newAbort(a *app, run func(context.Context, abortOptions) error) *cobra.Command {
	o := abortOptions{app: a}
	cmd := &cobra.Command{
		Use:   "abort JOB [VERSION]",
		Short: "Give up a version that is not live yet",
		Long: `Stop a version that is replaying, catching up or waiting to be promoted, and drop its table. What is live is not
touched. Once the view reads the version it is too late: use rollback.`,
		Example: "  kappactl abort pageviews\n  kappactl abort pageviews v3 --dry-run",
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

func runAbort(ctx context.Context, o abortOptions) error {
	return act{app: o.app, verb: reprocess.Abort, target: o.target, dryRun: o.dryRun, waitAgent: o.waitAgent.value}.run(ctx)
}
