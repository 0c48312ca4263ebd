package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

func newABStart(a *app, run func(context.Context, abOptions) error) *cobra.Command {
	o := &abOptions{app: a, verb: ledger.ABStart}
	assign := choice{}
	for _, word := range job.Assigns() {
		assign.of = append(assign.of, string(word))
	}
	coverage := 0.0
	cmd := o.about(&cobra.Command{
		Use:   "start JOB",
		Short: "Split the readers of a job between versions",
		Long: `Split the readers of the job between its live version, the control, and other versions that are caught up. Readers
name their subject in a setting, kappactl.subject, or call the function VIEW_for(subject); who names none reads the
control. VIEW__arms shows all arms, each row with its version.

Without --weights the arms are those of experiment.weights in the job file, or the live version and the one candidate,
equally. While the experiment runs its arms can be neither aborted, paused, retired nor dropped.`,
		Example: `  kappactl deploy pageviews.yaml --until verified
  kappactl ab start pageviews --weights v1=0.9,v2=0.1
  kappactl ab start pageviews --coverage 0.2 --assign sticky --dry-run`,
	}, func(cmd *cobra.Command) error {
		if cmd.Flags().Changed("coverage") {
			if err := checkCoverage(cmd, coverage); err != nil {
				return err
			}
			o.args.Coverage = &coverage
		}
		o.args.Assign = job.Assign(assign.value)
		return o.readWeights(cmd)
	}, run)
	f := cmd.Flags()
	f.StringSliceVar(&o.weights, "weights", nil, "`VERSION=SHARE` of every arm, together 1")
	f.Float64Var(&coverage, "coverage", 1,
		"the share of subjects in the experiment; others read the control (default: the job file's)")
	f.Var(&assign, "assign",
		"hash: weights stay for the run; sticky: the first arm of a subject is stored (default: the job file's)")
	return cmd
}

func runABStart(ctx context.Context, o abOptions) error { return runABAct(ctx, o) }
