package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/reprocess"
)

type resumeOptions struct {
	*app
	target    target
	dryRun    bool
	waitAgent duration
}

func newResume(a *app, run func(context.Context, resumeOptions) error) *cobra.Command {
	o := resumeOptions{app: a}
	cmd := &cobra.Command{
		Use:     "resume JOB [VERSION]",
		Short:   "Let a paused version go on where it stopped",
		Example: "  kappactl resume pageviews v2",
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

func runResume(ctx context.Context, o resumeOptions) error {
	return act{app: o.app, verb: reprocess.Resume, target: o.target, dryRun: o.dryRun, waitAgent: o.waitAgent.value}.run(ctx)
}
