package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// newBatch holds the commands about the batch generations of lambda jobs.
func newBatch(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "batch",
		Short: "Run, inspect and roll back batch generations",
		Long: `Compute the results of a job with mode: lambda again, from all of its records or from what came since the last time,
and choose which generation of them readers see, merged with what has come since its run began.`,
		Example: "  kappactl batch list pageviews",
	}
	asGroup(cmd)
	cmd.AddCommand(newBatchRun(a, runBatchRun), newBatchList(a, runBatchList), newBatchStatus(a, runBatchStatus),
		newBatchCancel(a, runBatchCancel), newBatchRollback(a, runBatchRollback))
	return cmd
}

// batchOptions are those of the commands about the batch layer of a version; without VERSION the live one.
type batchOptions struct {
	*app
	target        target
	full          bool
	acceptChanges bool
	acceptDeletes bool
	wait          bool
	generation    int
	waitAgent     duration
}

// about makes cmd one about a version of a JOB.
func (o *batchOptions) about(cmd *cobra.Command, run func(context.Context, batchOptions) error) *cobra.Command {
	cmd.Args = between([]string{"JOB"}, []string{"VERSION"})
	cmd.RunE = o.target.then(func(cmd *cobra.Command) error { return run(cmd.Context(), *o) })
	return cmd
}

func newBatchRun(a *app, run func(context.Context, batchOptions) error) *cobra.Command {
	o := batchOptions{app: a}
	cmd := o.about(&cobra.Command{
		Use:   "run JOB [VERSION]",
		Short: "Compute a generation and show it",
		Long: `Compute the results up to this moment in tables of their own, compare them with what readers see, and show them in one
step. Readers and the speed layer go on meanwhile. Checks that gate a flip of versions decide about the generation, too. Without --wait the command ends once the run has begun; with it, it ends
as the run does: exit code 0 when readers see the generation, 5 when too much has changed (batch.max_changed) or a check
does not pass, 7 when neither
the archive nor the log holds all offsets, or the archive may lack deletes (--accept-lost-deletes), 6 when another run is under way.`,
		Example:     "  kappactl batch run pageviews\n  kappactl batch run pageviews --full --wait --timeout 6h -o json",
		Annotations: map[string]string{timeoutKey: noTimeout},
	}, run)
	cmd.Flags().BoolVar(&o.full, "full", false, "compute from scratch, whatever batch.full_every says")
	cmd.Flags().BoolVar(&o.acceptChanges, "accept-changes", false,
		"show the generation that was refused last, or else a new one, whatever differs")
	cmd.Flags().BoolVar(&o.acceptDeletes, "accept-lost-deletes", false,
		"compute from an archive that may lack deletes, which brings back what was deleted")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait for the end of the run")
	waitAgentFlag(cmd.Flags(), &o.waitAgent)
	return cmd
}

func newBatchList(a *app, run func(context.Context, batchOptions) error) *cobra.Command {
	o := batchOptions{app: a}
	return o.about(&cobra.Command{
		Use:   "list JOB [VERSION]",
		Short: "List the generations of a job",
		Long: `List the generations of a version, the newest first. States: building, live (readers see it), kept (readers can be shown it
again), failed (it was never shown), retired (its rows are gone).`,
		Example: "  kappactl batch list pageviews\n  kappactl batch list pageviews -o csv",
	}, run)
}

func newBatchStatus(a *app, run func(context.Context, batchOptions) error) *cobra.Command {
	o := batchOptions{app: a}
	return o.about(&cobra.Command{
		Use:   "status JOB [VERSION]",
		Short: "Show the live generation and the run under way",
		Long: `Show which generation readers see and how old its cut is, how far the run under way is, and where the time of the last run
went.`,
		Example: "  kappactl batch status pageviews",
	}, run)
}

func newBatchCancel(a *app, run func(context.Context, batchOptions) error) *cobra.Command {
	o := batchOptions{app: a}
	cmd := o.about(&cobra.Command{
		Use:     "cancel JOB [VERSION]",
		Short:   "End the run under way",
		Long:    "End the run under way without showing its generation. Readers go on with the live one; the next run begins from the start.",
		Example: "  kappactl batch cancel pageviews",
	}, run)
	waitAgentFlag(cmd.Flags(), &o.waitAgent)
	return cmd
}

func newBatchRollback(a *app, run func(context.Context, batchOptions) error) *cobra.Command {
	o := batchOptions{app: a}
	cmd := &cobra.Command{
		Use:   "rollback JOB GENERATION [VERSION]",
		Short: "Show readers a kept generation again",
		Long: `Show readers a generation that is kept, with all that has come since its run began: no record is lost. The schedule is
paused and a run under way is cancelled, since they would show the same results again.`,
		Example: "  kappactl batch rollback pageviews 4",
		Args:    between([]string{"JOB", "GENERATION"}, []string{"VERSION"}),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if o.generation, err = strconv.Atoi(args[1]); err != nil || o.generation < 0 {
			return usage(cmd, "generation %q: want a number, as batch list prints it", args[1])
		}
		if o.target, err = parseTarget(cmd, append(args[:1:1], args[2:]...)); err != nil {
			return err
		}
		return run(cmd.Context(), o)
	}
	a.yesFlag(cmd.Flags())
	waitAgentFlag(cmd.Flags(), &o.waitAgent)
	return cmd
}

func runBatchCancel(ctx context.Context, o batchOptions) error {
	return o.act(ledger.BatchCancel, ledger.Args{}).run(ctx)
}

func runBatchRollback(ctx context.Context, o batchOptions) error {
	return o.act(ledger.BatchRollback, ledger.Args{Generation: o.generation}).run(ctx)
}

func (o batchOptions) act(verb ledger.Verb, args ledger.Args) act {
	return act{app: o.app, verb: verb, target: o.target, args: args, waitAgent: o.waitAgent.value}
}

// version is the version that the command is about: the one given, or the live one.
func (o batchOptions) version(ctx context.Context, c *client) (job.Ref, error) {
	return c.resolve(ctx, o.target, ledger.BatchRun)
}
