package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/internal/report"
)

func newABReport(a *app, run func(context.Context, abLook, string) error) *cobra.Command {
	o := &abLook{app: a}
	var dir string
	cmd := o.about(&cobra.Command{
		Use:   "report JOB",
		Short: "Write the report of an experiment: one JSON document and one HTML page",
		Long: `Write how the newest experiment of a job went so far: its arms, plots of their weights and mean rewards, its guardrails, and what was
decided, by whom and why. The HTML page needs no network.`,
		Example: "  kappactl ab report pageviews --dir ./reports",
	}, func(ctx context.Context, o abLook) error { return run(ctx, o, dir) })
	cmd.Flags().StringVar(&dir, "dir", ".", "`FOLDER` to write into; it is made when it is not there")
	return cmd
}

func runABReport(ctx context.Context, o abLook, dir string) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	course, err := abtest.Store{}.Course(ctx, c.pool, o.job)
	if err != nil {
		return err
	}
	files, err := writeReport(dir, fmt.Sprintf("%s-experiment-%d", course.Job, course.Run),
		func(w io.Writer) error { return render.JSON(w, course) },
		func(w io.Writer) error { return report.Experiment(w, course) })
	if err != nil {
		return err
	}
	return o.result(files, files.print)
}
