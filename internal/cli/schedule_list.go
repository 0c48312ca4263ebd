package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
)

// newSchedule holds the commands about the times at which batch runs begin.
func newSchedule(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Look after the times at which batch runs begin",
		Long: `Look after the schedules of jobs of mode lambda: when batch runs begin by themselves. A schedule is set in
the job file, with batch.schedule, and applied by deploy.`,
		Example: "  kappactl schedule list",
	}
	asGroup(cmd)
	cmd.AddCommand(newScheduleList(a, runScheduleList), newScheduleNext(a, runScheduleNext),
		newSchedulePause(a, runSchedulePause),
		newScheduleResume(a, runScheduleResume), newScheduleRunNow(a, runScheduleRunNow))
	return cmd
}

type scheduleOptions struct {
	*app
	job       job.Name // empty: every job
	dryRun    bool
	waitAgent duration
}

// about makes cmd one about a JOB, which may be left out when some is false.
func (o *scheduleOptions) about(cmd *cobra.Command, needed bool,
	run func(context.Context, scheduleOptions) error,
) *cobra.Command {
	cmd.Args = between(nil, []string{"JOB"})
	if needed {
		cmd.Args = between([]string{"JOB"}, nil)
		cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "print what would be done, change nothing")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if len(args) > 0 {
			if o.job, err = parseJob(cmd, args[0]); err != nil {
				return err
			}
		}
		return run(cmd.Context(), *o)
	}
	return cmd
}

// parseJob reads the name of a job.
func parseJob(cmd *cobra.Command, text string) (job.Name, error) {
	t, err := parseTarget(cmd, []string{text})
	if err == nil && t.Number != nil {
		return "", usage(cmd, "a schedule is one of the job, not of a version: write %s", t.Job)
	}
	return t.Job, err
}

func newScheduleList(a *app, run func(context.Context, scheduleOptions) error) *cobra.Command {
	o := scheduleOptions{app: a}
	return o.about(&cobra.Command{
		Use:   "list [JOB]",
		Short: "Show schedules, the next run and the last one of each",
		Long: `Show the schedule of each job, when the next batch run is due and what became of the last. States:
active, late (two runs were due and readers see the results of neither), paused, no_lambda (the live version is not one of mode
lambda, or there is none: no run begins), starting (no agent has seen the schedule yet).`,
		Example: "  kappactl schedule list\n  kappactl schedule list flights -o json",
	}, false, run)
}

func runScheduleList(ctx context.Context, o scheduleOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	found, err := o.schedules(ctx, c.pool)
	if err != nil {
		return err
	}
	return o.result(found, func(w io.Writer) error { return o.print(w, found) })
}

// schedules are those of the job that was asked for, which has one, or of every job.
func (o scheduleOptions) schedules(ctx context.Context, db pg.DB) ([]schedule.Status, error) {
	found, err := schedule.Store{}.Statuses(ctx, db, o.job)
	if err == nil && len(found) == 0 && o.job != "" {
		return nil, &job.Refusal{
			Code: job.ExitUsage, Cause: fmt.Sprintf("job %q has no schedule", o.job),
			Next: "kappactl schedule list   # those of other jobs; a job file has one with mode: lambda and batch.schedule",
		}
	}
	return found, err
}

func (o scheduleOptions) print(w io.Writer, found []schedule.Status) error {
	style := o.style()
	if len(found) == 0 && style.People {
		_, err := fmt.Fprintln(w, "no schedule: write batch.schedule in the file of a job of mode lambda")
		return err
	}
	t := render.NewTable("job", "state", "schedule", "zone", "next", "last", "result")
	for _, s := range found {
		last := ""
		if s.Last != nil {
			last = render.Time(&s.Last.ScheduledFor)
		}
		t.Add(render.Text(string(s.Job)), render.Toned(toneOfSchedule(s.State), string(s.State)),
			render.Text(s.Expression), render.Text(s.Zone),
			render.Text(render.Time(s.NextAt)), render.Text(render.Or(last)), render.Text(render.Or(resultOf(s))))
	}
	return t.Write(w, style)
}

func toneOfSchedule(c schedule.Condition) render.Tone {
	switch c {
	case schedule.Late:
		return render.Bad
	case schedule.Paused, schedule.NotLambda:
		return render.Warn
	case schedule.Active, schedule.Starting:
	}
	return render.Plain
}

// resultOf is the result of the last run.
func resultOf(s schedule.Status) string {
	l := s.Last
	switch {
	case l == nil:
		return ""
	case l.State == schedule.Missed:
		return fmt.Sprintf("missed, %d in all", l.Together)
	case l.State == schedule.Skipped && l.Request != nil:
		return fmt.Sprintf("skipped: request %d was under way", *l.Request)
	case l.State != schedule.Started:
		return string(l.State)
	case l.ExitCode == nil:
		return "running"
	case *l.ExitCode == job.ExitOK:
		return "done"
	}
	return fmt.Sprintf("failed (%d): %s", *l.ExitCode, l.Message)
}
