package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/speedlayer"
)

type diffOptions struct {
	*app
	job   job.Name
	a, b  *job.Number
	limit *float64 // the largest share of keys that may differ
	how   job.DiffHow
}

// diffHold is how long versions are held at the same offsets, and may take to come there.
const diffHold = 10 * time.Second

func newDiff(a *app, run func(context.Context, diffOptions) error) *cobra.Command {
	o := diffOptions{app: a}
	most, tolerance := "", ""
	cmd := &cobra.Command{
		Use:   "diff JOB [A B]",
		Short: "Compare two versions key by key, at the same offsets",
		Long: `Hold two versions at the same offsets for a moment, take one snapshot of both, and compare there: keys that only one has,
keys with other values, and ten examples, each with the columns that differ: what diff checks of a job file do. The key of a row that
was appended is its place in the log. Only columns that both have are compared; doubles may differ in the last digits. Without A and B
it is the live version against the newest other one. Differences alone are no failure; with --max-changed it ends with 5 when more than
that share of the keys differs, and with 3 when the versions do not come to the same offsets.

A table that was adopted (v0) has no offsets: it is compared as it is, and what the other version has read since the last write to it
differs.`,
		Example:     "  kappactl diff pageviews\n  kappactl diff pageviews v1 v2 --max-changed 1% -o json",
		Args:        between([]string{"JOB"}, []string{"A", "B"}),
		Annotations: map[string]string{timeoutKey: "5m"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return usage(cmd, "missing argument B: name both versions, or none")
			}
			t, err := parseTarget(cmd, args[:1])
			if err != nil {
				return err
			}
			o.job = t.Job
			for i, to := range []**job.Number{&o.a, &o.b} {
				if len(args) == 3 {
					n, err := job.ParseNumber(args[1+i])
					if err != nil {
						return usage(cmd, "%s", err)
					}
					*to = &n
				}
			}
			if cmd.Flags().Changed("where") {
				if err := job.OneCondition(o.how.Where); err != nil {
					return usage(cmd, "--where: %s", err)
				}
			}
			if most != "" {
				share, err := job.ParsePercentage(most)
				if err != nil {
					return usage(cmd, "--max-changed: %s", err)
				}
				o.limit = &share
			}
			if tolerance != "" {
				share, err := job.ParsePercentage(tolerance)
				if err != nil {
					return usage(cmd, "--tolerance: %s", err)
				}
				o.how.Tolerance = share
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&most, "max-changed", "", "fail when more than this `PERCENT` of the keys differ")
	cmd.Flags().StringSliceVar(&o.how.Ignore, "ignore", nil, "`COLUMNS` that are not compared, separated by commas")
	cmd.Flags().StringVar(&tolerance, "tolerance", "", "numbers that lie no further apart than this `PERCENT` of the larger one are the same")
	cmd.Flags().StringVar(&o.how.Where, "where", "", "compare only rows that satisfy this PostgreSQL `CONDITION` over the view's columns")
	return cmd
}

func runDiff(ctx context.Context, o diffOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	a, b, err := o.versions(ctx, c)
	if err != nil {
		return err
	}
	if a.Adopted() || b.Adopted() {
		o.progress("v0 was adopted and has no offsets: it is compared as it is now")
	}
	by := "diff " + o.by() + " " + rand.Text()[:8]
	d, err := c.store.Diff(ctx, reprocess.DiffDeps{Positions: speedlayer.Store{}, Views: views(), HoldFor: diffHold}, by, a, b, o.how)
	if err != nil {
		return err
	}
	if err := o.result(d, func(w io.Writer) error { return printDiff(w, o.style(), d) }); err != nil {
		return err
	}
	if o.limit != nil && d.Share() > *o.limit {
		return &job.Refusal{
			Code: job.ExitChecks, Cause: fmt.Sprintf("%.3g%% of the keys differ, allowed are %.3g%%", 100*d.Share(), 100**o.limit),
			Next: fmt.Sprintf("kappactl diff %s %s %s", o.job, d.A, d.B),
		}
	}
	return nil
}

// versions are the two asked for, else the live one and the newest other one that follows the topics.
func (o diffOptions) versions(ctx context.Context, c *client) (a, b job.Ref, err error) {
	status, err := c.store.Status(ctx, o.job)
	if err != nil {
		return a, b, err
	}
	if o.a != nil {
		for _, n := range []job.Number{*o.a, *o.b} {
			if _, err := versionOf(status, n); err != nil {
				return a, b, err
			}
		}
		return job.Ref{Job: o.job, Number: *o.a}, job.Ref{Job: o.job, Number: *o.b}, nil
	}
	for _, v := range status.Versions {
		if status.Live != nil && v.Version != *status.Live && v.Phase.Consumes() {
			live, err := job.ParseNumber(*status.Live)
			if err != nil {
				return a, b, err
			}
			other, err := job.ParseNumber(v.Version)
			return job.Ref{Job: o.job, Number: live}, job.Ref{Job: o.job, Number: other}, err
		}
	}
	return a, b, &job.Refusal{
		Code: job.ExitConflict, Cause: fmt.Sprintf("job %q has no two versions with tables", o.job), Next: "kappactl status " + string(o.job),
	}
}

func printDiff(w io.Writer, style render.Style, d reprocess.Diff) error {
	t := render.NewTable("what", ">keys")
	for _, row := range []struct {
		what string
		n    int64
	}{{"only in " + d.A, d.OnlyA}, {"only in " + d.B, d.OnlyB}, {"changed", d.Changed}, {"same", d.Same}} {
		t.Add(render.Text(row.what), number(style, &row.n))
	}
	if err := t.Write(w, style); err != nil {
		return err
	}
	for _, e := range d.Examples {
		if _, err := fmt.Fprintln(w, e.Words(d.A, d.B)); err != nil {
			return err
		}
	}
	return nil
}
