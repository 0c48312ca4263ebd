package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
)

func newSchedulePause(a *app, run func(context.Context, scheduleOptions) error) *cobra.Command {
	o := scheduleOptions{app: a}
	return o.about(&cobra.Command{
		Use:   "pause JOB",
		Short: "Let no batch run begin by itself",
		Long: `Let no batch run of the job begin by its schedule until resume. A run under way goes on, and kappactl batch run
begins one as before. While a schedule is paused no run counts as missed.`,
		Example: "  kappactl schedule pause flights",
	}, true, run)
}

func newScheduleResume(a *app, run func(context.Context, scheduleOptions) error) *cobra.Command {
	o := scheduleOptions{app: a}
	return o.about(&cobra.Command{
		Use:   "resume JOB",
		Short: "Let batch runs begin by the schedule again",
		Long: `Let batch runs of the job begin by its schedule again. It counts from now: runs that were due while it was paused are
not made up for.`,
		Example: "  kappactl schedule resume flights",
	}, true, run)
}

// scheduleChanged is the output of schedule pause and schedule resume.
type scheduleChanged struct {
	Job     job.Name   `json:"job"`
	Paused  bool       `json:"paused"`
	Changed bool       `json:"changed"`
	NextAt  *time.Time `json:"next_at"` // null: none begins by itself
	DryRun  bool       `json:"dry_run"`
	Message string     `json:"message"`
}

// runSchedulePause needs no agent: agents read the row at their next look.
func runSchedulePause(ctx context.Context, o scheduleOptions) error {
	return o.change(ctx, func(ctx context.Context, tx *pg.Tx, r *scheduleChanged) (err error) {
		r.Paused, r.NextAt = true, nil
		r.Changed, err = schedule.Store{}.PauseFor(ctx, tx, o.job, o.by())
		r.Message = fmt.Sprintf("the schedule of %s is paused; next: kappactl schedule resume %s", o.job, o.job)
		if !r.Changed {
			r.Message = fmt.Sprintf("the schedule of %s is paused already", o.job)
		}
		return err
	})
}

func runScheduleResume(ctx context.Context, o scheduleOptions) error {
	return o.change(ctx, func(ctx context.Context, tx *pg.Tx, r *scheduleChanged) error {
		next, changed, err := schedule.Store{}.Resume(ctx, tx, o.job, o.by())
		r.Changed = changed
		if changed {
			r.NextAt = &next
		}
		r.Message = fmt.Sprintf("the schedule of %s goes on; the next run is due at %s", o.job, render.Time(r.NextAt))
		if !changed {
			r.Message = fmt.Sprintf("the schedule of %s is not paused; the next run is due at %s", o.job, render.Time(r.NextAt))
		}
		return err
	})
}

// change changes a schedule that agents follow, and prints the result. A dry run is rolled back.
func (o scheduleOptions) change(ctx context.Context, f func(context.Context, *pg.Tx, *scheduleChanged) error) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	r := scheduleChanged{Job: o.job, DryRun: o.dryRun}
	err = o.try(ctx, c, func(tx *pg.Tx) error {
		s, err := o.followed(ctx, tx)
		if err != nil {
			return err
		}
		r.NextAt = s.NextAt
		return f(ctx, tx, &r)
	})
	if err != nil {
		return err
	}
	return o.result(r, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, o.would()+r.Message)
		return err
	})
}

func (o scheduleOptions) would() string {
	if o.dryRun {
		return "would do: "
	}
	return ""
}

// try runs f in a transaction, which a dry run rolls back.
func (o scheduleOptions) try(ctx context.Context, c *client, f func(*pg.Tx) error) error {
	err := c.pool.Try(ctx, o.dryRun, f)
	if errors.Is(err, pg.ErrDryRun) {
		return nil
	}
	return err
}

// followed is the schedule that agents follow.
func (o scheduleOptions) followed(ctx context.Context, db pg.DB) (schedule.Status, error) {
	found, err := o.schedules(ctx, db)
	if err != nil {
		return schedule.Status{}, err
	}
	s := found[0]
	switch {
	case s.PausedAt != nil:
	case s.State == schedule.NotLambda:
		return s, &job.Refusal{
			Code: job.ExitConflict, Cause: fmt.Sprintf("no batch run of %s begins: its live version is not one of mode lambda",
				o.job),
			Next: "kappactl status " + string(o.job),
		}
	case s.State == schedule.Starting:
		return s, &job.Refusal{
			Code: job.ExitConflict, Cause: fmt.Sprintf("no agent has seen the schedule of %s yet", o.job),
			Next: "the same command again in some seconds; agents are started with kappactl serve",
		}
	}
	return s, nil
}
