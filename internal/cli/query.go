package cli

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/lookup"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
)

type queryOptions struct {
	*app
	job   job.Name
	equal []lookup.Equal
	limit int
	as    string // a subject; empty: none
}

func newQuery(a *app, run func(context.Context, queryOptions) error) *cobra.Command {
	o := queryOptions{app: a}
	cmd := &cobra.Command{
		Use:   "query JOB [COLUMN=VALUE …]",
		Short: "Read through the serving view of a job",
		Long: `Read rows of the job's serving view as an application would. COLUMN=VALUE keeps the rows with that value; the value is read
as one of the column's type. Rows come in the order of their keys, time first; rows without a key by all their columns, and when there
are more than --limit, which of them is PostgreSQL's choice. JSON is an array of objects, CSV has a line of column names, and all
formats hold every digit. When there are more rows than --limit it says so on the error stream.`,
		Example: "  kappactl query pageviews url=/checkout --limit 20\n" +
			"  kappactl query pageviews hour=2026-01-01T10:00:00Z -o csv",
		ValidArgsFunction: a.queried,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, "missing argument JOB")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseTarget(cmd, args[:1])
			if err != nil {
				return err
			}
			if t.Number != nil {
				return usage(cmd, "query reads the view, whichever version it shows: name the job alone")
			}
			if o.limit < 1 {
				return usage(cmd, "--limit is at least 1")
			}
			for _, arg := range args[1:] {
				column, value, found := strings.Cut(arg, "=")
				if !found || column == "" {
					return usage(cmd, "%q is not COLUMN=VALUE", arg)
				}
				o.equal = append(o.equal, lookup.Equal{Column: column, Value: value})
			}
			o.job = t.Job
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().IntVar(&o.limit, "limit", 100, "at most `N` rows")
	cmd.Flags().StringVar(&o.as, "as", "", "read what this `SUBJECT` of a running experiment reads; nothing is recorded")
	return cmd
}

func runQuery(ctx context.Context, o queryOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	status, err := c.store.Status(ctx, o.job)
	if err != nil {
		return err
	}
	if status.Live == nil {
		return &job.Refusal{
			Code: job.ExitConflict, Cause: fmt.Sprintf("job %q has no live version: its view does not exist yet", o.job),
			Next: "kappactl status " + string(o.job),
		}
	}
	view, err := job.ParseViewName(quotedView(status.View))
	if err != nil {
		return err
	}
	live, err := job.ParseNumber(*status.Live)
	if err != nil {
		return err
	}
	keys, err := c.store.Keys(ctx, job.Ref{Job: o.job, Number: live})
	if err != nil {
		return err
	}
	var rows lookup.Rows
	err = c.pool.ReadOnly(ctx, func(tx *pg.Tx) (err error) {
		if err := o.asSubject(ctx, tx); err != nil {
			return err
		}
		rows, err = lookup.Read(ctx, tx, lookup.Question{View: view, Keys: keys, Equal: o.equal, Limit: o.limit})
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case rows.More && len(keys) > 0 && o.limit == 1:
		o.progress("only the first row: --limit takes more")
	case rows.More && len(keys) > 0:
		o.progress("only the first %d rows: --limit takes more", o.limit)
	case rows.More:
		o.progress("only %d of the rows, which have no key to be ordered by: COLUMN=VALUE chooses, --limit takes more",
			o.limit)
	}
	return o.print(rows)
}

// asSubject makes the transaction read as the subject of --as.
func (o queryOptions) asSubject(ctx context.Context, tx *pg.Tx) error {
	if o.as == "" {
		return nil
	}
	arm, err := abtest.Store{}.As(ctx, tx, o.job, o.as)
	switch {
	case err != nil:
		return err
	case arm == "":
		o.progress("note: no experiment of %s is running; every subject reads the live version", o.job)
	default:
		o.progress("note: this subject reads %s", arm)
	}
	return nil
}

// quotedView quotes both parts of a view's name as status has it.
func quotedView(name string) string {
	schema, view, _ := strings.Cut(name, ".")
	return pg.Ident(schema, view)
}

func (o queryOptions) print(r lookup.Rows) error {
	if o.flags.output.value == string(render.FormatCSV) {
		return printCSV(o.out(), r) // the texts of PostgreSQL, with every digit
	}
	return o.result(append([]json.RawMessage{}, r.Objects...), func(w io.Writer) error {
		return printRows(w, o.style(), r)
	})
}

// printRows writes a table.
func printRows(w io.Writer, s render.Style, r lookup.Rows) error {
	t := render.NewNamedTable(r.Columns...)
	for _, row := range r.Texts {
		cells := make([]render.Cell, len(row))
		for i, v := range row {
			cells[i] = render.Text(known(v))
		}
		t.Add(cells...)
	}
	return t.Write(w, s)
}

// printCSV writes RFC 4180; NULL is empty.
func printCSV(w io.Writer, r lookup.Rows) error {
	out := csv.NewWriter(w)
	lines := [][]string{r.Columns}
	for _, row := range r.Texts {
		line := make([]string, len(row))
		for i, v := range row {
			if v != nil {
				line[i] = *v
			}
		}
		lines = append(lines, line)
	}
	return out.WriteAll(lines)
}
