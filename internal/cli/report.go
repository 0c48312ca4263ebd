package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/internal/report"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
	"github.com/kappactl/kappactl/speedlayer"
)

type reportOptions struct {
	*app
	target target
	dir    string
}

func newReport(a *app, run func(context.Context, reportOptions) error) *cobra.Command {
	o := reportOptions{app: a}
	cmd := &cobra.Command{
		Use:   "report JOB [VERSION]",
		Short: "Write the report of a deployment: one JSON document and one HTML page",
		Long: `Write what is known of a version's newest deployment: what it was to replay and what changed, where the time went, how far
behind it was, what its checks said, who did what, the job file and its git revision. The HTML page needs no network. Without VERSION it is
the live version, else the newest. deploy and wait write the same at their end with --report.`,
		Example: "  kappactl report pageviews\n  kappactl report pageviews v2 --dir ./reports -o json",
		Args:    between([]string{"JOB"}, []string{"VERSION"}),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.target, err = parseTarget(cmd, args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.dir, "dir", ".", "`FOLDER` to write into; it is made when it is not there")
	return cmd
}

// reportFiles are the files of a report.
type reportFiles struct {
	JSON string `json:"json"`
	HTML string `json:"html"`
}

func runReport(ctx context.Context, o reportOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	ref, err := c.shown(ctx, o.target)
	if err != nil {
		return err
	}
	id, err := c.store.NewestDeployment(ctx, ref)
	if err != nil {
		return err
	}
	files, err := c.report(ctx, id, o.dir)
	if err != nil {
		return err
	}
	return o.result(files, files.print)
}

func (f reportFiles) print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "report: %s\nreport: %s\n", f.HTML, f.JSON)
	return err
}

// reportFlag adds --report to a command that follows a deployment.
func reportFlag(f *pflag.FlagSet, dir *string) {
	f.StringVar(dir, "report", "", "at the end write a report of the deployment into this `FOLDER` (also KAPPACTL_REPORT)")
}

// reported writes the report of a deployment that was followed, when one is wanted. That it cannot be written is a
// warning: it does not change what became of the deployment.
func (c *client) reported(ctx context.Context, a *app, dir string, id int64) *reportFiles {
	if dir = cmp.Or(dir, a.sys.Env("KAPPACTL_REPORT")); dir == "" {
		return nil
	}
	files, err := c.report(ctx, id, dir)
	if err != nil {
		a.tell("warning: no report: %s\n", oneLine(err))
		return nil
	}
	return &files
}

// report writes the two files of a deployment's report.
func (c *client) report(ctx context.Context, id int64, dir string) (reportFiles, error) {
	r, err := c.gather(ctx, id)
	if err != nil {
		return reportFiles{}, err
	}
	return writeReport(dir, fmt.Sprintf("%s-%s-deployment-%d", r.Job, r.Version, r.Deployment),
		func(w io.Writer) error { return render.JSON(w, r) }, func(w io.Writer) error { return report.HTML(w, r) })
}

// writeReport writes the two files of a report into a folder, which it makes.
func writeReport(dir, name string, document, page func(io.Writer) error) (reportFiles, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // documents
		return reportFiles{}, &job.Refusal{Code: job.ExitUsage, Cause: err.Error(), Next: "name another folder", Err: err}
	}
	base := filepath.Join(dir, name)
	files := reportFiles{JSON: base + ".json", HTML: base + ".html"}
	for path, write := range map[string]func(io.Writer) error{files.JSON: document, files.HTML: page} {
		if err := writeFile(path, write); err != nil {
			return reportFiles{}, &job.Refusal{Code: job.ExitUsage, Cause: err.Error(), Next: "name another folder", Err: err}
		}
	}
	return files, nil
}

func writeFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	return write(f)
}

// mostEvents bounds the history in a report.
const mostEvents = 1000

// gather reads everything that is in a report.
func (c *client) gather(ctx context.Context, id int64) (report.Report, error) {
	d, err := c.store.Deployment(ctx, id)
	if err != nil {
		return report.Report{}, err
	}
	shown, err := c.store.Status(ctx, d.Job)
	if err != nil {
		return report.Report{}, err
	}
	v, err := versionOf(shown, d.Number)
	if err != nil {
		return report.Report{}, err
	}
	r := report.Report{
		Schema: report.Schema, At: c.now().UTC(), Job: d.Job, Team: shown.Team, View: shown.View, Version: v.Version,
		Hash: v.Hash, Deployment: id,
		State: d.State, Phase: d.Phase, ExitCode: d.ExitCode, Message: cmp.Or(d.Message, d.VersionError),
		MessageCode: cmp.Or(d.MessageCode, d.VersionErrorCode), Next: d.Next, By: v.CreatedBy,
		GitRevision: v.GitRevision, CreatedAt: d.CreatedAt.UTC(), PromotedAt: d.PromotedAt, EndedAt: d.EndedAt,
		Records:     v.Records,
		DeadLetters: v.DeadLetters, Checks: append([]status.Check{}, v.Checks...),
	}
	if r.Timings, err = c.store.Timings(ctx, d.Ref()); err != nil {
		return r, err
	}
	if r.Lag, err = c.store.Lag(ctx, id); err != nil {
		return r, err
	}
	if r.Events, err = c.store.History(ctx, d.Job, &d.Number, mostEvents); err != nil {
		return r, err
	}
	if r.File, err = c.store.File(ctx, d.Ref()); err != nil {
		return r, err
	}
	if r.Layers, err = c.layers(ctx, d.Ref()); err != nil {
		return r, err
	}
	r.Plan, err = c.planned(ctx, d)
	if err != nil || d.Previous == nil {
		return r, err
	}
	previous := job.Number(*d.Previous)
	name := previous.String()
	r.Previous = &name
	r.PreviousFile, err = c.store.File(ctx, job.Ref{Job: d.Job, Number: previous})
	return r, err
}

// planned returns the ranges that the version of a deployment was to read, and the changes of its file.
func (c *client) planned(ctx context.Context, d ledger.Deployment) (report.Plan, error) {
	p := report.Plan{Changes: []job.Change{}, Partitions: []report.Range{}}
	positions, err := speedlayer.Store{}.Positions(ctx, c.pool, d.Ref())
	if err != nil {
		return p, err
	}
	for _, at := range positions {
		p.Partitions = append(p.Partitions, report.Range{
			Topic: at.Topic, Partition: at.ID, From: at.CoversFrom,
			To: at.FrozenEnd,
		})
		p.Offsets += at.FrozenEnd - at.CoversFrom
	}
	if d.Previous == nil || *d.Previous == int(d.Number) || *d.Previous == 0 {
		return p, nil
	}
	after, err := c.store.Spec(ctx, d.Ref())
	if err != nil {
		return p, err
	}
	before, err := c.store.Spec(ctx, job.Ref{Job: d.Job, Number: job.Number(*d.Previous)})
	if err != nil {
		return p, err
	}
	p.Changes = append(p.Changes, job.Changes(before, after)...)
	return p, nil
}
