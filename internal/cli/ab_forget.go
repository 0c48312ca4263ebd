package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

func newABForget(a *app, run func(context.Context, abLook) error) *cobra.Command {
	o := &abLook{app: a}
	cmd := o.about(&cobra.Command{
		Use:   "forget JOB SUBJECT",
		Short: "Delete what is stored of a subject",
		Long: `Delete the assignments of a subject in all experiments of a job. A subject of a running one that is recorded again gets
its arm by hash.`,
		Example: "  kappactl ab forget pageviews user-4711",
	}, run)
	one := cmd.RunE
	cmd.Args = between([]string{"JOB", "SUBJECT"}, nil)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.subject = args[1]
		return one(cmd, args)
	}
	return cmd
}

// abForgotten is the output of ab forget. It does not repeat the subject.
type abForgotten struct {
	Job     job.Name `json:"job"`
	Deleted int64    `json:"deleted"`
	Message string   `json:"message"`
}

func runABForget(ctx context.Context, o abLook) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := ledger.ReadJob(ctx, c.pool, o.job); err != nil {
		return err
	}
	n, err := abtest.Store{}.Forget(ctx, c.pool, o.job, o.subject, o.by())
	if err != nil {
		return err
	}
	r := abForgotten{Job: o.job, Deleted: n, Message: reason.ABForgot(n).Text()}
	return o.result(r, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, r.Message)
		return err
	})
}
