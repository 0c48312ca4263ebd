package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/mergecheck"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/internal/trial"
)

type testOptions struct {
	*app
	file     jobFile
	database bool // merge and finish in PostgreSQL
}

func newTest(a *app, run func(context.Context, testOptions) error) *cobra.Command {
	o := testOptions{app: a}
	cmd := &cobra.Command{
		Use:   "test FILE...",
		Short: "Run the tests of a job file",
		Long: `Run the tests that stand in the job file: the given records go through its query, and the rows that come out are
compared with those expected. It needs no broker and no database, and then sees the columns of the query. With --dsn or --context
each record is merged and finished by PostgreSQL, in temporary tables that are rolled back, and the rows are those that the view
would show: with serve.columns and serve.where. A test that fails ends it with 5.

-o junit prints the results as JUnit XML, which CI systems show beside the code.

FILE is a job file, a folder of job files, or - for standard input. Its variables, ${NAME}, get their values by --set, --vars or the environment.`,
		Annotations: map[string]string{outputKey: junitFormat},
		Example:     "  kappactl test examples/pageviews.yaml\n  kappactl test examples/pageviews.yaml -o junit > tests.xml\n  kappactl test examples/pageviews.yaml --dsn 'host=127.0.0.1 dbname=dev'",
		Args:        several,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.database = cmd.Flags().Changed("dsn") || cmd.Flags().Changed("context")
			files := jobFiles{app: a, args: args, flags: &o.file}
			return files.each(cmd.Context(), func(ctx context.Context, a *app, path string) error {
				o := o
				o.app, o.file.path = a, path
				return run(ctx, o)
			})
		},
	}
	o.file.flags(cmd.Flags())
	return cmd
}

// testResult is the output of test.
type testResult struct {
	Job    job.Name       `json:"job"`
	Passed int            `json:"passed"`
	Failed int            `json:"failed"`
	Tests  []trial.Result `json:"tests"`
}

func runTest(ctx context.Context, o testOptions) error {
	c, err := o.compile(ctx, o.file)
	if err != nil {
		return err
	}
	if err := sqlOnly(c.spec.Job, c.spec.Engine, "test",
		"test the program with its own test tool; checks in the job file guard the flip"); err != nil {
		return err
	}
	var merge *mergecheck.Deps
	if o.database {
		pool, err := o.app.database(ctx)
		if err != nil {
			return err
		}
		defer pool.Close()
		deps := merging(ctx, pool)
		merge = &deps
	}
	results, err := trial.Run(ctx, c.spec, c.query, merge)
	if err != nil {
		return err
	}
	out := testResult{Job: c.spec.Job, Tests: append([]trial.Result{}, results...)}
	for _, r := range results {
		if r.OK {
			out.Passed++
		} else {
			out.Failed++
		}
	}
	o.current().summary = fmt.Sprintf("%s passed", render.Plural(int64(out.Passed), "test"))
	var failed error
	if out.Failed > 0 {
		failed = &job.Refusal{
			Code: job.ExitChecks, Cause: fmt.Sprintf("%d of %s failed", out.Failed, render.Plural(int64(len(results)), "test")),
			Next: "kappactl test " + o.file.String(),
		}
	}
	if o.flags.output.value == junitFormat {
		o.current().failed = true
		err = errors.Join(o.suite(out.junit(o.file.path)), failed)
	} else {
		err = o.outcome(ctx, out, func(w io.Writer) error { return out.print(w, o.style()) }, failed)
	}
	for _, r := range results {
		if !r.OK && o.annotates() {
			o.annotate("error", job.Problem{
				File: o.file.path, Line: r.Line, Column: 1, Path: "test " + r.Name, Cause: strings.Join(testLines(r), "\n"),
			})
		}
		if r.Unseen != "" {
			o.progress("%s: %s not looked at: run it through PostgreSQL with --dsn", r.Name, r.Unseen)
		}
	}
	if len(results) == 0 {
		o.progress("%s has no tests: add some below the key tests", o.file.path)
	}
	return err
}

func (r testResult) print(w io.Writer, style render.Style) error {
	for _, t := range r.Tests {
		verdict := style.Paint(render.Good, "ok    ")
		if !t.OK {
			verdict = style.Paint(render.Bad, "FAILED")
		}
		if _, err := fmt.Fprintf(w, "%s  %s  (%s, %s)\n", verdict, t.Name, t.Engine,
			render.Plural(int64(t.Rows), "row")); err != nil {
			return err
		}
		for _, line := range testLines(t) {
			if _, err := fmt.Fprintf(w, "        %s\n", line); err != nil {
				return err
			}
		}
	}
	return nil
}

// testLines say what is wrong with a test, one line a thing.
func testLines(t trial.Result) []string {
	var out []string
	if t.Error != "" {
		out = append(out, t.Error)
	}
	for _, d := range t.Differences {
		if d.Kind != trial.Changed {
			out = append(out, fmt.Sprintf("%s row: %s", d.Kind, rowText(d.Row)))
			continue
		}
		key := map[string]*string{}
		for name, v := range d.Row {
			if _, differs := d.Columns[name]; !differs {
				key[name] = v
			}
		}
		for _, name := range slices.Sorted(maps.Keys(d.Columns)) {
			v := d.Columns[name]
			out = append(out, fmt.Sprintf("%s: %s: want %s, got %s", rowText(key), name, sqlText(v.Want), sqlText(v.Got)))
		}
	}
	for _, l := range t.DeadLetters {
		out = append(out, fmt.Sprintf("record %d is a dead letter (%s): %s", l.Record, l.Reason, l.Detail))
	}
	return out
}

// rowText is a row for people.
func rowText(row map[string]*string) string {
	parts := make([]string, 0, len(row))
	for _, name := range slices.Sorted(maps.Keys(row)) {
		parts = append(parts, name+"="+sqlText(row[name]))
	}
	if len(parts) == 0 {
		return "(the row)"
	}
	return strings.Join(parts, " ")
}

func sqlText(v *string) string {
	if v == nil {
		return "NULL"
	}
	return *v
}
