package cli

import "github.com/spf13/cobra"

// newAB holds the commands about experiments between versions.
func newAB(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ab",
		Short: "Split readers between versions of a job",
		Long: `Split the readers of a job between several of its versions, stably by subject, and plan such experiments
(docs/experiments.md).`,
		Example: "  kappactl ab start pageviews --weights v1=0.9,v2=0.1\n  kappactl ab status pageviews",
	}
	asGroup(cmd)
	cmd.AddCommand(newABStart(a, runABStart), newABStatus(a, runABStatus), newABWeights(a, runABAct),
		newABPause(a, runABAct),
		newABResume(a, runABAct), newABStop(a, runABAct), newABPromote(a, runABPromote), newABDecisions(a, runABDecisions),
		newABForget(a, runABForget), newABReport(a, runABReport), newABSimulate(a, runABSimulate))
	return cmd
}
