package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/reprocess/ledger"
)

type promoteOptions struct {
	actOptions
	ignoreSnapshots bool
	liveIsDown      bool
}

func newPromote(a *app, run func(context.Context, promoteOptions) error) *cobra.Command {
	o := promoteOptions{actOptions: actOptions{app: a}}
	cmd := o.command(&cobra.Command{
		Use:   "promote JOB [VERSION]",
		Short: "Make the serving view read a verified version",
		Long: `Flip the serving view of the job to a version that is caught up, after its checks have passed at the same offsets
on both sides. Readers see one transaction. Without VERSION there must be only one candidate.`,
		Example:     "  kappactl promote pageviews\n  kappactl promote pageviews v2 --dry-run",
		Annotations: map[string]string{timeoutKey: flipTimeout},
	}, func(cmd *cobra.Command) error { return run(cmd.Context(), o) })
	f := cmd.Flags()
	a.yesFlag(f)
	f.BoolVar(&o.ignoreSnapshots, "ignore-snapshots", false,
		"flip although a reader with an older snapshot could see counters fall")
	f.BoolVar(&o.liveIsDown, "live-is-down", false, "flip without comparing: the live version has failed or is paused")
	return cmd
}

func runPromote(ctx context.Context, o promoteOptions) error {
	do := o.act(ledger.Promote)
	do.args = ledger.Args{IgnoreSnapshots: o.ignoreSnapshots, LiveIsDown: o.liveIsDown}
	return do.run(ctx)
}
