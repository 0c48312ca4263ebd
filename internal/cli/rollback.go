package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/reprocess/ledger"
)

type rollbackOptions struct {
	actOptions
	stale           bool
	ignoreSnapshots bool
}

func newRollback(a *app, run func(context.Context, rollbackOptions) error) *cobra.Command {
	o := rollbackOptions{actOptions: actOptions{app: a}}
	cmd := o.command(&cobra.Command{
		Use:   "rollback JOB [VERSION]",
		Short: "Make the serving view read the standby version again",
		Long: `Flip the serving view back to the version that was live before. It has kept consuming, so nothing is lost. A standby
that has failed, was paused or has fallen behind needs --stale: readers then miss what came since.`,
		Example:     "  kappactl rollback pageviews\n  kappactl rollback pageviews v1 --stale",
		Annotations: map[string]string{timeoutKey: flipTimeout},
	}, func(cmd *cobra.Command) error { return run(cmd.Context(), o) })
	a.yesFlag(cmd.Flags())
	cmd.Flags().BoolVar(&o.ignoreSnapshots, "ignore-snapshots", false,
		"flip although a reader with an older snapshot could see counters fall")
	cmd.Flags().BoolVar(&o.stale, "stale", false, "accept a standby that no longer follows its topics")
	return cmd
}

func runRollback(ctx context.Context, o rollbackOptions) error {
	do := o.act(ledger.Rollback)
	do.args = ledger.Args{Stale: o.stale, IgnoreSnapshots: o.ignoreSnapshots}
	return do.run(ctx)
}
