package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

type scheduleNextOptions struct {
	scheduleOptions
	count      int
	expression string
	zone       string
}

func newScheduleNext(a *app, run func(context.Context, scheduleNextOptions) error) *cobra.Command {
	o := scheduleNextOptions{scheduleOptions: scheduleOptions{app: a}}
	cmd := o.about(&cobra.Command{
		Use:   "next [JOB]",
		Short: "Show when the next batch runs are due",
		Long: `Show when the next batch runs are due, as agents compute it. With --expression, and --zone, it shows the runs of
a schedule that is in no job file yet, and asks no server.`,
		Example: "  kappactl schedule next flights -n 10\n  kappactl schedule next --expression '30 2 * * *' --zone Europe/Berlin",
	}, false, nil)
	cmd.Flags().IntVarP(&o.count, "count", "n", 5, "show `N` runs of each schedule")
	cmd.Flags().StringVar(&o.expression, "expression", "", "a `SCHEDULE` as batch.schedule takes it")
	cmd.Flags().StringVar(&o.zone, "zone", "UTC", "the time `ZONE` of --expression")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if len(args) > 0 {
			if o.job, err = parseJob(cmd, args[0]); err != nil {
				return err
			}
		}
		zone, given := cmd.Flags().Changed("zone"), cmd.Flags().Changed("expression")
		switch {
		case o.count < 1 || o.count > 1000:
			return usage(cmd, "--count %d is out of range: write 1 to 1000", o.count)
		case given && o.job != "":
			return usage(cmd, "give JOB or --expression")
		case zone && !given:
			return usage(cmd, "--zone goes with --expression")
		case given:
			if _, err := schedule.NewMoments(o.expression, o.zone); err != nil {
				return wrongSchedule(cmd, o.zone, err)
			}
			return runScheduleTry(o)
		}
		return run(cmd.Context(), o)
	}
	return cmd
}

// wrongSchedule is the error of an expression or a zone that cannot be read.
func wrongSchedule(cmd *cobra.Command, zone string, err error) error {
	if f, wrong := errors.AsType[*schedule.Fault](err); wrong {
		return usage(cmd, "--expression: %s; %s", f, f.Cure)
	}
	return usage(cmd, "--zone: unknown time zone %q; write a name of the IANA database, such as UTC or Europe/Berlin",
		zone)
}

// scheduleMoment is a run to come as it is printed.
type scheduleMoment struct {
	Job   string    `json:"job"` // empty with --expression
	At    time.Time `json:"at"`
	Local string    `json:"local"` // the same, as clocks of the zone show it
	Zone  string    `json:"zone"`
}

func momentsFrom(name job.Name, m schedule.Moments, first time.Time, count int) []scheduleMoment {
	out := make([]scheduleMoment, count)
	for i := range out {
		out[i] = scheduleMoment{
			Job: string(name), At: first.UTC(), Local: first.In(m.Zone()).Format(time.RFC3339),
			Zone: m.Zone().String(),
		}
		first = m.Next(first)
	}
	return out
}

// runScheduleTry shows the moments of an expression.
func runScheduleTry(o scheduleNextOptions) error {
	m, err := schedule.NewMoments(o.expression, o.zone)
	if err != nil {
		return err
	}
	return o.show(momentsFrom("", m, m.Next(o.sys.Now().Truncate(time.Second)), o.count))
}

func runScheduleNext(ctx context.Context, o scheduleNextOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	found, err := o.schedules(ctx, c.pool)
	if err != nil {
		return err
	}
	out := []scheduleMoment{}
	for _, s := range found {
		m, err := schedule.NewMoments(s.Expression, s.Zone)
		if err != nil {
			return fmt.Errorf("read the schedule of %s: %w", s.Job, err)
		}
		if s.NextAt == nil {
			o.progress("note: %s", noRuns(s))
			continue
		}
		out = append(out, momentsFrom(s.Job, m, *s.NextAt, o.count)...)
	}
	slices.SortStableFunc(out, func(a, b scheduleMoment) int { return a.At.Compare(b.At) })
	return o.show(out)
}

// noRuns is why no run is due.
func noRuns(s schedule.Status) string {
	switch s.State {
	case schedule.Paused:
		return fmt.Sprintf("the schedule of %s is paused; next: kappactl schedule resume %s", s.Job, s.Job)
	case schedule.NotLambda:
		return fmt.Sprintf("no batch run of %s begins: its live version is not one of mode lambda", s.Job)
	case schedule.Active, schedule.Late, schedule.Starting:
	}
	return fmt.Sprintf("no agent has seen the schedule of %s yet", s.Job)
}

func (o scheduleNextOptions) show(found []scheduleMoment) error {
	return o.result(found, func(w io.Writer) error {
		t := render.NewTable("at", "in its zone", "zone", "job")
		for _, m := range found {
			t.Add(render.Text(render.Time(&m.At)), render.Text(m.Local), render.Text(m.Zone), render.Text(render.Or(m.Job)))
		}
		return t.Write(w, o.style())
	})
}
