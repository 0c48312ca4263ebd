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
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/speedlayer"
)

type diffOptions struct {
	*app
	job   job.Name
	a, b  *job.Number
	limit *float64 // the largest share of keys that may differ
	how   job.DiffHow
}

const (
	diffHold = 10 * time.Second      // how long versions are held at the same offsets, and may take to reach them
	diffPoll = 50 * time.Millisecond // between two checks whether they have
)

func newDiff(a *app, run func(context.Context, diffOptions) error) *cobra.Command {
	o := diffOptions{app: a}
	var given diffFlags
	cmd := &cobra.Command{
		Use:   "diff JOB [A B]",
		Short: "Compare two versions key by key, at the same offsets",
		Long: `Hold two versions at the same offsets for a moment, take one snapshot of both, and compare there: keys that only one has,
keys with other values, and ten examples, each with the columns that differ: what diff checks of a job file do. The key of a row that
was appended is its place in the log. Only columns that both have are compared; doubles may differ in the last digits. Without A and B
it is the live version against the newest other one. Differences alone are no failure; with --max-changed it ends with 5 when more than
that share of the keys differs, and with 3 when the versions do not reach the same offsets.

A table that was adopted (v0) has no offsets: it is compared as it is, and what the other version has read since the last write to it
differs.`,
		Example:     "  kappactl diff pageviews\n  kappactl diff pageviews v1 v2 --max-changed 1% -o json",
		Args:        between([]string{"JOB"}, []string{"A", "B"}),
		Annotations: map[string]string{timeoutKey: "5m"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return usage(cmd, "missing argument B: name both versions, or none")
			}
			if err := o.parse(cmd, args, given); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&given.most, "max-changed", "", "fail when more than this `PERCENT` of the keys differ")
	cmd.Flags().StringSliceVar(&o.how.Ignore, "ignore", nil, "`COLUMNS` that are not compared, separated by commas")
	cmd.Flags().StringVar(&given.tolerance, "tolerance", "",
		"numbers that lie no further apart than this `PERCENT` of the larger one are the same")
	cmd.Flags().StringVar(&o.how.Where, "where", "",
		"compare only rows that satisfy this PostgreSQL `CONDITION` over the view's columns")
	return cmd
}

// diffFlags are flags as they were given; empty: not given.
type diffFlags struct{ most, tolerance string }

// parse reads the job, its versions and the flags.
func (o *diffOptions) parse(cmd *cobra.Command, args []string, given diffFlags) error {
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
	if given.most != "" {
		share, err := job.ParsePercentage(given.most)
		if err != nil {
			return usage(cmd, "--max-changed: %s", err)
		}
		o.limit = &share
	}
	if given.tolerance != "" {
		if o.how.Tolerance, err = job.ParsePercentage(given.tolerance); err != nil {
			return usage(cmd, "--tolerance: %s", err)
		}
	}
	return nil
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
	if err := c.comparableAtOffsets(ctx, a, b); err != nil {
		return err
	}
	by := "diff " + o.by() + " " + rand.Text()[:8]
	differ := checks.Differ{Pool: c.pool, Positions: speedlayer.Store{}, Views: views(), Barrier: checks.Barrier{
		Pool: c.pool, Positions: speedlayer.Store{}, HoldFor: diffHold, PollEvery: diffPoll, Log: o.log(),
	}}
	d, err := differ.Versions(ctx, by, a, b, o.how)
	if err != nil {
		return err
	}
	var failed error
	if o.limit != nil && d.Share() > *o.limit {
		failed = &job.Refusal{
			Code: job.ExitChecks, Cause: fmt.Sprintf("%.3g%% of the keys differ, allowed are %.3g%%", 100*d.Share(),
				100**o.limit),
			Next: fmt.Sprintf("kappactl diff %s %s %s", o.job, d.A, d.B),
		}
	}
	return o.outcome(ctx, d, func(w io.Writer) error { return printDiff(w, o.style(), d) }, failed)
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
		Code: job.ExitConflict, Cause: fmt.Sprintf("job %q has no two versions with tables", o.job),
		Next: "kappactl status " + string(o.job),
	}
}

func printDiff(w io.Writer, style render.Style, d checks.Diff) error {
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
