package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

type checkOptions struct {
	*app
	file         jobFile
	seed         uint64
	rounds       int  // random splits; 0: the default of mergecheck
	requireMerge bool // fail if the merge check does not run
	fix, write   bool // print or write the fixed job file
}

func newCheck(a *app, run func(context.Context, checkOptions) error) *cobra.Command {
	o := checkOptions{app: a}
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Validate a job file, show the resulting table and run the merge check",
		Long: `Validate the job file, compile its query and print each column of the view: its type, what is stored for it, and whether
the result is exact. Each problem is reported with its line, column, cause and fix.

With a database, check also runs the merge check. It takes the 2,000 oldest and the 2,000 newest records of the topic, or
generated records if the topic has none, splits them into random parts and merges the parts in PostgreSQL, in temporary
tables of a transaction that is rolled back. The result must equal the query run once over all the records. The check tries 30
random splits; --seed repeats those of an earlier run. A result that differs ends with exit code 5.

PostgreSQL also parses the SQL in serve and checks, without running it; SQL that can never run ends with exit code 2.

--fix prints the job file with everything that kappactl changes in the query or needs beside it: the columns of a star, names of
columns, the latest row of a key as an aggregation, unnest in FROM as a subquery, and distinct_max. It checks nothing else and
connects to nothing. --write writes it to FILE; comments outside the query are kept.

Without a database the merge check is reported as not run. --require-merge-check makes that a failure.

FILE is a job file, a folder of job files, or - for standard input. Its variables, ${NAME}, get their values by --set, --vars or the environment.`,
		Example: "  kappactl check examples/pageviews.yaml\n  kappactl check examples/pageviews.yaml --require-merge-check --seed 42\n  kappactl check jobs/\n  kappactl check orders.yaml --fix --write",
		Args:    several,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.write && !o.fix:
				return usage(cmd, "--write needs --fix")
			case o.write && slices.Contains(args, standardInput):
				return usage(cmd, "--write cannot write to standard input: name the file")
			}
			if !cmd.Flags().Changed("seed") {
				o.seed = uint64(a.sys.Now().UnixNano()) % 1_000_000 //nolint:gosec // after 1970
			}
			files := jobFiles{app: a, args: args, flags: &o.file}
			return files.each(cmd.Context(), func(ctx context.Context, a *app, path string) error {
				o := o
				o.app, o.file.path = a, path
				if o.fix {
					return runFix(ctx, o)
				}
				return run(ctx, o)
			})
		},
	}
	o.file.flags(cmd.Flags())
	cmd.Flags().Uint64Var(&o.seed, "seed", 0, "repeat the random splits of the run that printed this `NUMBER`")
	cmd.Flags().BoolVar(&o.requireMerge, "require-merge-check", false, "fail if the merge check cannot run")
	cmd.Flags().BoolVar(&o.fix, "fix", false, "print the job file with everything that kappactl changes in the query")
	cmd.Flags().BoolVarP(&o.write, "write", "w", false, "with --fix, write it to FILE instead of printing it")
	return cmd
}

type checkResult struct {
	Job     job.Name      `json:"job"`
	Hash    string        `json:"hash"`
	View    string        `json:"view"`
	Shape   job.Shape     `json:"shape"`
	Columns []checkColumn `json:"columns"`
	// Warnings are rendered problems that do not make the file invalid.
	Warnings   []string   `json:"warnings"`
	MergeCheck mergeCheck `json:"merge_check"`
}

type checkColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	StoredAs string `json:"stored_as"`
	Exact    bool   `json:"exact"`
	Key      bool   `json:"key"`
}

func runCheck(ctx context.Context, o checkOptions) error {
	c, err := o.compile(ctx, o.file)
	if err != nil {
		return err
	}
	result := checkResult{
		Job: c.spec.Job, Hash: c.hash, View: c.spec.Serve.View.String(), Shape: c.query.Layout.Shape,
		Warnings: []string{},
	}
	for _, v := range c.query.Layout.View {
		result.Columns = append(result.Columns, checkColumn{
			Name: v.Name, Type: v.Type, StoredAs: v.StoredAs, Exact: v.Exact,
			Key: v.Key,
		})
	}
	o.annotateWarnings(c.query.Warnings)
	for _, w := range c.query.Warnings {
		result.Warnings = append(result.Warnings, w.String())
		o.progress("warning: %s", w)
	}
	for _, w := range guarantees(c.spec) {
		result.Warnings = append(result.Warnings, w)
		o.progress("note: %s", w)
	}
	var failed error
	result.MergeCheck, failed = o.mergeCheck(ctx, c)
	result.typed()
	return o.outcome(ctx, result, func(w io.Writer) error {
		if !o.style().People {
			o.progress("merge check: %s", result.MergeCheck.words()) // stdout holds only the rows of the table
		}
		return result.print(w, o.style())
	}, o.verdict(result, failed))
}

// typed fills in the types of serve.columns, which only PostgreSQL knows.
func (r checkResult) typed() {
	if r.MergeCheck.Report == nil {
		return
	}
	for i, c := range r.Columns {
		r.Columns[i].Type = cmp.Or(c.Type, r.MergeCheck.Types[c.Name])
	}
}

// verdict is the error that check ends with after it has printed its result.
func (o checkOptions) verdict(r checkResult, failed error) error {
	switch {
	case failed != nil:
		return failed
	case r.MergeCheck.Result == mergeFailed:
		f := r.MergeCheck.Failure
		return &job.Refusal{
			Code: job.ExitChecks,
			Cause: fmt.Sprintf("merge check failed: split %d (%s, %s) differs from the query run once: %s",
				f.Round, f.How, render.Plural(int64(f.Parts), "part"), firstDifference(f)),
			Next: fmt.Sprintf("%s; then kappactl check %s --seed %d   # the same splits again",
				r.rewrite(), o.file.String(), r.MergeCheck.Seed),
		}
	case r.MergeCheck.Result == mergeNotRun && o.requireMerge:
		return r.MergeCheck.err
	}
	return nil
}

// rewrite advises how to change a query whose merged parts differ from the query run once.
func (r checkResult) rewrite() string {
	var rounded []string
	for _, c := range r.Columns {
		if !c.Exact {
			rounded = append(rounded, strconv.Quote(c.Name))
		}
	}
	if len(rounded) > 0 {
		return "in the query, cast what " + strings.Join(rounded, ", ") + " is computed from to DECIMAL, which is exact"
	}
	return "in the query, replace the aggregates of the columns that differ (docs/query-costs.md lists those that merge exactly)"
}

func (r checkResult) print(w io.Writer, style render.Style) error {
	t := render.NewTable("column", "type", "stored as", "exact")
	for _, c := range r.Columns {
		exact := render.Text("exact")
		if !c.Exact {
			exact = render.Toned(render.Warn, "approximate")
		}
		stored := c.StoredAs
		if c.Key {
			stored = cmp.Or(stored, "key")
		}
		t.Add(render.Text(c.Name), render.Text(render.Or(c.Type)), render.Text(stored), exact)
	}
	if style.People {
		if _, err := fmt.Fprintf(w, "%s  %s  view %s\n\n", style.Paint(render.Strong, string(r.Job)), r.Hash,
			r.View); err != nil {
			return err
		}
	}
	if err := t.Write(w, style); err != nil {
		return err
	}
	if style.People {
		_, err := fmt.Fprintf(w, "\nmerge check: %s\n", r.MergeCheck.words())
		return err
	}
	return nil
}
