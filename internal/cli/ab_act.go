package cli

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// abOptions are what every act on an experiment takes.
type abOptions struct {
	*app
	verb      ledger.Verb
	job       job.Name
	args      ledger.Args
	waitAgent duration
	weights   []string
	accept    string
}

// about makes cmd one about a JOB; read, which may be nil, reads the flags.
func (o *abOptions) about(cmd *cobra.Command, read func(*cobra.Command) error,
	run func(context.Context, abOptions) error,
) *cobra.Command {
	cmd.Args = between([]string{"JOB"}, nil)
	cmd.Annotations = map[string]string{timeoutKey: flipTimeout}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if o.job, err = experimentOf(cmd, args[0]); err != nil {
			return err
		}
		if read != nil {
			if err := read(cmd); err != nil {
				return err
			}
		}
		return run(cmd.Context(), *o)
	}
	cmd.Flags().BoolVar(&o.args.DryRun, "dry-run", false, "let an agent try it and roll it back; print what would be done")
	waitAgentFlag(cmd.Flags(), &o.waitAgent)
	o.yesFlag(cmd.Flags())
	return cmd
}

// experimentOf reads the name of a job: an experiment is one of the job.
func experimentOf(cmd *cobra.Command, text string) (job.Name, error) {
	t, err := parseTarget(cmd, []string{text})
	if err == nil && t.Number != nil {
		return "", usage(cmd, "an experiment is one of the job, not of a version: write %s", t.Job)
	}
	return t.Job, err
}

// readWeights reads --weights v1=0.9,v2=0.1.
func (o *abOptions) readWeights(cmd *cobra.Command) error {
	for _, text := range o.weights {
		name, weight, err := armNumber(text)
		if err != nil {
			return usage(cmd, "--weights: %s", err)
		}
		n, err := job.ParseNumber(name)
		if err != nil {
			return usage(cmd, "--weights: %s", err)
		}
		o.args.Weights = append(o.args.Weights, job.ArmWeight{Version: n, Weight: weight})
	}
	if len(o.weights) == 0 {
		return nil
	}
	if err := job.CheckWeights(o.args.Weights); err != nil {
		return usage(cmd, "--weights: %s", err)
	}
	return nil
}

func newABWeights(a *app, run func(context.Context, abOptions) error) *cobra.Command {
	o := &abOptions{app: a, verb: ledger.ABWeights}
	cmd := o.about(&cobra.Command{
		Use:   "weights JOB",
		Short: "Change the weights of a running experiment",
		Long: `Change how many of the subjects read each arm. It is one row, which the next statement of every reader sees. Subjects that were
recorded keep their arm; so it takes an experiment with assign: sticky.`,
		Example: "  kappactl ab weights pageviews --weights v1=0.5,v2=0.5",
	}, func(cmd *cobra.Command) error {
		if len(o.weights) == 0 {
			return usage(cmd, "give --weights")
		}
		return o.readWeights(cmd)
	}, run)
	cmd.Flags().StringSliceVar(&o.weights, "weights", nil, "`VERSION=SHARE` of every arm, together 1")
	return cmd
}

func newABPause(a *app, run func(context.Context, abOptions) error) *cobra.Command {
	o := &abOptions{app: a, verb: ledger.ABPause}
	return o.about(&cobra.Command{
		Use:   "pause JOB",
		Short: "Let every reader read the control for a while",
		Long: `Let every reader of the job read the control, the live version, until resume. Recorded subjects keep their arm for then. It is
one row, which the next statement of every reader sees.`,
		Example: "  kappactl ab pause pageviews",
	}, nil, run)
}

func newABResume(a *app, run func(context.Context, abOptions) error) *cobra.Command {
	o := &abOptions{app: a, verb: ledger.ABResume}
	cmd := o.about(&cobra.Command{
		Use:     "resume JOB",
		Short:   "Split readers again after a pause",
		Long:    "Split the readers of the job again, by the arms that they had. The reason why it may go on is kept with the decision.",
		Example: "  kappactl ab resume pageviews --accept 'the slow index is rebuilt'",
	}, func(cmd *cobra.Command) error {
		if o.args.Accept = o.accept; o.accept == "" {
			return usage(cmd, "give --accept: why may it go on?")
		}
		return nil
	}, run)
	cmd.Flags().StringVar(&o.accept, "accept", "", "the `REASON` why it may go on")
	return cmd
}

func newABStop(a *app, run func(context.Context, abOptions) error) *cobra.Command {
	o := &abOptions{app: a, verb: ledger.ABStop}
	return o.about(&cobra.Command{
		Use:   "stop JOB",
		Short: "End the experiment of a job",
		Long: `End the experiment: every reader reads the live version again, through a plain view. The other arms stay as they are, and can be
promoted, aborted or retired. To make one of them live, promote it: that ends the experiment, too.`,
		Example: "  kappactl ab stop pageviews",
	}, nil, run)
}

// abResult is the output of an act on an experiment.
type abResult struct {
	Job         job.Name     `json:"job"`
	Verb        ledger.Verb  `json:"verb"`
	ExitCode    job.ExitCode `json:"exit_code"`
	Message     string       `json:"message"`
	MessageCode reason.Code  `json:"message_code"`
	Next        string       `json:"next"`
	DryRun      bool         `json:"dry_run"`
}

// runABAct asks for an act and prints the answer.
func runABAct(ctx context.Context, o abOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.needAgent(ctx, o.waitAgent.value); err != nil {
		return err
	}
	answer, err := o.answered(ctx, c, ledger.Request{Job: o.job, Verb: o.verb, Args: o.args, By: o.by()},
		fmt.Sprintf("kappactl ab status %s   # an agent still answers the request", o.job))
	if err != nil {
		return err
	}
	r := abResult{
		Job: o.job, Verb: o.verb, ExitCode: answer.Code, Message: answer.Text(), MessageCode: answer.Reason.Code,
		Next:   answer.Next,
		DryRun: o.args.DryRun,
	}
	if r.ExitCode == job.ExitOK {
		return o.result(r, r.print)
	}
	return o.outcome(ctx, r, nil, refusal(answer))
}

func (r abResult) print(w io.Writer) error {
	text := r.Message
	switch {
	case r.DryRun:
		text = "would be done: " + text
	case r.Next != "":
		text += "\nnext: " + r.Next
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// checkCoverage refuses a share of subjects that is none.
func checkCoverage(cmd *cobra.Command, coverage float64) error {
	if math.IsNaN(coverage) || coverage <= 0 || coverage > 1 {
		return usage(cmd, "--coverage: write a number above 0, up to 1")
	}
	return nil
}
