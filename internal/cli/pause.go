package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/reprocess/ledger"
)

func newPause(a *app, run func(context.Context, actOptions) error) *cobra.Command {
	o := actOptions{app: a}
	return o.command(&cobra.Command{
		Use:   "pause JOB [VERSION]",
		Short: "Stop the work of a version that is not live, for a while",
		Long: `Stop replaying or following the topics. Positions are kept; resume goes on exactly there. A live version cannot be
paused. Without a version it is the candidate: a standby is only paused by name, for readers cannot go back to it meanwhile.`,
		Example: "  kappactl pause pageviews v2\n  kappactl resume pageviews v2",
	}, func(cmd *cobra.Command) error { return run(cmd.Context(), o) })
}

func runPause(ctx context.Context, o actOptions) error {
	return o.act(ledger.Pause).run(ctx)
}
