package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

// abLook are the options of commands that read an experiment.
type abLook struct {
	*app
	job     job.Name
	subject string
}

func (o *abLook) about(cmd *cobra.Command, run func(context.Context, abLook) error) *cobra.Command {
	cmd.Args = between([]string{"JOB"}, nil)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if o.job, err = experimentOf(cmd, args[0]); err != nil {
			return err
		}
		return run(cmd.Context(), *o)
	}
	return cmd
}

func newABStatus(a *app, run func(context.Context, abLook) error) *cobra.Command {
	o := &abLook{app: a}
	return o.about(&cobra.Command{
		Use:   "status JOB",
		Short: "Show the experiment of a job",
		Long: `Show the newest experiment of a job: its arms, their weights and state, how many subjects were recorded in each,
what their rewards and guardrails say, and what the next look would decide.`,
		Example: "  kappactl ab status pageviews",
	}, run)
}

func runABStatus(ctx context.Context, o abLook) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := abtest.Store{}.Status(ctx, c.pool, o.job)
	if err != nil {
		return err
	}
	return o.result(s, func(w io.Writer) error { return printExperiment(w, o.style(), s) })
}

func printExperiment(w io.Writer, style render.Style, s abtest.Status) error {
	_, err := fmt.Fprintf(w, "run %d of %s: %s since %s, by %s\n%s\nassign: %s, coverage: %s, epoch: %d\n", s.Run, s.Job,
		s.State, render.Time(&s.StartedAt),
		render.Or(s.StartedBy), s.Reason, s.Assign, percent(s.Coverage), s.Epoch)
	if err != nil {
		return err
	}
	t := render.NewTable("arm", ">weight", "phase", "verdict", ">subjects")
	for _, a := range s.Arms {
		name := a.Version
		if a.Control {
			name += " (control)"
		}
		t.Add(render.Text(name), render.Text(percent(a.Weight)), render.Text(string(a.Phase)),
			render.Text(string(a.Verdict)), render.Text(render.Count(a.Subjects)))
	}
	if err := t.Write(w, style); err != nil {
		return err
	}
	if s.SampleRatio.Freedom > 0 || s.SampleRatio.Impossible {
		_, err = fmt.Fprintf(w, "sample ratio: p %s, chi-squared %s\n", figure(s.SampleRatio.P),
			figure(s.SampleRatio.ChiSquared))
	}
	if err != nil || s.Comparison == nil {
		return err
	}
	return printFindings(w, style, *s.Comparison)
}

func newABDecisions(a *app, run func(context.Context, abLook) error) *cobra.Command {
	o := &abLook{app: a}
	return o.about(&cobra.Command{
		Use:     "decisions JOB",
		Short:   "Show what was decided in the experiments of a job",
		Long:    "Show what was decided in the experiments of a job, newest first: starts, weights, pauses and ends, by whom and why.",
		Example: "  kappactl ab decisions pageviews",
	}, run)
}

func runABDecisions(ctx context.Context, o abLook) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	found, err := abtest.Store{}.Decisions(ctx, c.pool, o.job)
	if err != nil {
		return err
	}
	return o.result(found, func(w io.Writer) error {
		t := render.NewTable("at", ">run", ">epoch", "decision", "weights", "by", "reason")
		for _, d := range found {
			weights := make([]string, len(d.Weights))
			for i, a := range d.Weights {
				weights[i] = a.Version + " " + percent(a.Weight)
			}
			t.Add(render.Text(render.Time(&d.At)), render.Text(fmt.Sprint(d.Run)), render.Text(fmt.Sprint(d.Epoch)),
				render.Text(string(d.Verdict)),
				render.Text(strings.Join(weights, ", ")), render.Text(render.Or(d.By)), render.Text(d.Message))
		}
		return t.Write(w, o.style())
	})
}
