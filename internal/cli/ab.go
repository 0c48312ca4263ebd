package cli

import "github.com/spf13/cobra"

// newAB holds the commands about experiments between versions.
func newAB(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ab",
		Short: "Split readers between versions of a job",
		Long: `Split the readers of a job between several of its versions, stably by subject, and plan such experiments
(docs/experiments.md).`,
		Example: "  kappactl ab simulate --arm v1=0.10 --arm v2=0.115",
	}
	asGroup(cmd)
	cmd.AddCommand(newABSimulate(a, runABSimulate))
	return cmd
}
