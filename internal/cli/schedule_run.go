package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

func newScheduleRunNow(a *app, run func(context.Context, scheduleOptions) error) *cobra.Command {
	o := scheduleOptions{app: a}
	cmd := o.about(&cobra.Command{
		Use:   "run-now JOB",
		Short: "Begin the batch run of a schedule without waiting for its time",
		Long: `Ask for a batch run of the live version as the schedule would, and do not wait for it. The next run stays due at its time.
It works on a paused schedule too. While a run is under way it is refused with exit code 6.`,
		Example: "  kappactl schedule run-now flights",
	}, true, run)
	waitAgentFlag(cmd.Flags(), &o.waitAgent)
	return cmd
}

// scheduleRun is the output of schedule run-now.
type scheduleRun struct {
	Job     job.Name `json:"job"`
	Request *int64   `json:"request"` // null after a dry run
	DryRun  bool     `json:"dry_run"`
	Next    string   `json:"next"`
}

func runScheduleRunNow(ctx context.Context, o scheduleOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.needAgent(ctx, o.waitAgent.value); err != nil {
		return err
	}
	r := scheduleRun{Job: o.job, DryRun: o.dryRun, Next: "kappactl schedule list " + string(o.job)}
	err = o.try(ctx, c, func(tx *pg.Tx) error {
		if _, err := o.followed(ctx, tx); err != nil {
			return err
		}
		id, under, err := schedule.Store{}.RunNow(ctx, tx, o.job, o.by())
		if err == nil && under {
			return &job.Refusal{
				Code: job.ExitConflict, Cause: fmt.Sprintf("a batch run of %s is under way: request %d", o.job, id), Next: r.Next,
			}
		}
		if !o.dryRun {
			r.Request = &id
		}
		return err
	})
	if err != nil {
		return err
	}
	return o.result(r, func(w io.Writer) error {
		text := fmt.Sprintf("would ask for a batch run of %s", o.job)
		if r.Request != nil {
			text = fmt.Sprintf("asked for a batch run of %s: request %d\nnext: %s", o.job, *r.Request, r.Next)
		}
		_, err := fmt.Fprintln(w, text)
		return err
	})
}
