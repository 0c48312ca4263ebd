package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/reprocess/ledger"
)

func newAbort(a *app, run func(context.Context, actOptions) error) *cobra.Command {
	o := actOptions{app: a}
	return o.command(&cobra.Command{
		Use:   "abort JOB [VERSION]",
		Short: "Give up a version that is not live yet",
		Long: `Stop a version that is replaying, catching up or waiting to be promoted, and drop its tables. What is live is not
touched. Once the view reads the version it is too late: use rollback.`,
		Example: "  kappactl abort pageviews\n  kappactl abort pageviews v3 --dry-run",
	}, func(cmd *cobra.Command) error { return run(cmd.Context(), o) })
}

func runAbort(ctx context.Context, o actOptions) error {
	return o.act(ledger.Abort).run(ctx)
}
