package cli

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
)

type queryOptions struct {
	*app
	job   job.Name
	equal [][2]string // column and value
	limit int
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
		Example: "  kappactl query pageviews url=/checkout --limit 20\n  kappactl query pageviews hour=2026-01-01T10:00:00Z -o csv",
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
				o.equal = append(o.equal, [2]string{column, value})
			}
			o.job = t.Job
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().IntVar(&o.limit, "limit", 100, "at most `N` rows")
	return cmd
}

// rowsOf are the rows of a view as PostgreSQL prints them, and each as one JSON object.
type rowsOf struct {
	columns []string
	texts   [][]*string
	objects []json.RawMessage
	more    bool // than the limit
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
		return &job.Refusal{Code: job.ExitConflict, Cause: fmt.Sprintf("job %q has no live version: its view does not exist yet", o.job), Next: "kappactl status " + string(o.job)}
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
	var rows rowsOf
	err = c.pool.ReadOnly(ctx, func(tx *pg.Tx) (err error) {
		rows, err = o.read(ctx, tx, view, keys)
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case rows.more && len(keys) > 0 && o.limit == 1:
		o.progress("only the first row: --limit takes more")
	case rows.more && len(keys) > 0:
		o.progress("only the first %d rows: --limit takes more", o.limit)
	case rows.more:
		o.progress("only %d of the rows, which have no key to be ordered by: COLUMN=VALUE chooses, --limit takes more", o.limit)
	}
	return o.print(rows)
}

// quotedView quotes both parts of a view's name as status has it.
func quotedView(name string) string {
	schema, view, _ := strings.Cut(name, ".")
	return pg.Ident(schema, view)
}

// statement is the one SELECT; what was asked for is compared as values of the columns' types.
func (o queryOptions) statement(view job.ViewName, types map[string]string, names, keys []string) (sql string, args []any, err error) {
	var where []string
	for _, e := range o.equal {
		typ, known := types[e[0]]
		if !known {
			return "", nil, &job.Refusal{Code: job.ExitUsage, Cause: fmt.Sprintf("%s has no column %q", view, e[0]), Next: "its columns are " + strings.Join(names, ", ")}
		}
		args = append(args, e[1])
		where = append(where, fmt.Sprintf("q.%s = ($%d::text)::%s", pg.Ident(e[0]), len(args), typ))
	}
	items := make([]string, len(names))
	for i, n := range names {
		items[i] = "(q." + pg.Ident(n) + ")::text"
	}
	rows := fmt.Sprintf("SELECT * FROM %s AS q", pg.Ident(view.Schema, view.Name))
	if len(where) > 0 {
		rows += " WHERE " + strings.Join(where, " AND ")
	}
	var order []string
	if len(keys) > 0 {
		for _, k := range keys {
			order = append(order, "q."+pg.Ident(k))
		}
		rows += " ORDER BY " + strings.Join(order, ", ") // an index has it
	} else {
		for _, i := range items { // those that are shown: sorting all rows takes as long as there are rows
			order = append(order, i+` COLLATE "C"`)
		}
	}
	return fmt.Sprintf("SELECT row_to_json(q)::text, %s FROM (%s LIMIT %d) AS q ORDER BY %s", strings.Join(items, ", "), rows, o.limit+1, strings.Join(order, ", ")), args, nil
}

func (o queryOptions) read(ctx context.Context, tx *pg.Tx, view job.ViewName, keys []string) (rowsOf, error) {
	types, names, err := viewTypes(ctx, tx, view)
	if err != nil {
		return rowsOf{}, err
	}
	sql, args, err := o.statement(view, types, names, keys)
	if err != nil {
		return rowsOf{}, err
	}
	found, err := tx.Raw().Query(ctx, sql, args...)
	if err != nil {
		return rowsOf{}, err
	}
	out := rowsOf{columns: names}
	texts, err := pgx.CollectRows(found, func(r pgx.CollectableRow) ([]*string, error) {
		values := make([]*string, len(names)+1)
		targets := make([]any, len(values))
		for i := range values {
			targets[i] = &values[i]
		}
		return values, r.Scan(targets...)
	})
	if code := pg.Code(err); strings.HasPrefix(code, "22") { // a value that is not of the column's type
		return rowsOf{}, &job.Refusal{Code: job.ExitUsage, Cause: pg.Message(err), Next: "give a value of the column's type", Err: err}
	}
	if err != nil {
		return rowsOf{}, fmt.Errorf("read %s: %w", view, err)
	}
	if out.more = len(texts) > o.limit; out.more {
		texts = texts[:o.limit]
	}
	for _, t := range texts {
		out.objects = append(out.objects, json.RawMessage(*t[0]))
		out.texts = append(out.texts, t[1:])
	}
	return out, nil
}

// viewTypes are the columns of a view in order, with their types.
func viewTypes(ctx context.Context, tx *pg.Tx, view job.ViewName) (types map[string]string, names []string, err error) {
	rows, err := tx.Query(ctx, `SELECT a.attname::text, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a
		JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = @schema AND c.relname = @name AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
		pgx.NamedArgs{"schema": view.Schema, "name": view.Name})
	if err != nil {
		return nil, nil, fmt.Errorf("read the columns of %s: %w", view, err)
	}
	types = map[string]string{}
	var name, typ string
	_, err = pgx.ForEachRow(rows, []any{&name, &typ}, func() error {
		types[name], names = typ, append(names, name)
		return nil
	})
	if err == nil && len(names) == 0 {
		err = errors.New("it is gone")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the columns of %s: %w", view, err)
	}
	return types, names, nil
}

func (o queryOptions) print(r rowsOf) error {
	if o.flags.output.value == string(render.FormatCSV) {
		return printCSV(o.sys.Out, r) // with every digit as PostgreSQL prints it, and arrays too
	}
	return o.result(append([]json.RawMessage{}, r.objects...), func(w io.Writer) error { return r.table(w, o.style()) })
}

func (r rowsOf) table(w io.Writer, s render.Style) error {
	t := render.NewTable(r.columns...)
	for _, row := range r.texts {
		cells := make([]render.Cell, len(row))
		for i, v := range row {
			cells[i] = render.Text(known(v))
		}
		t.Add(cells...)
	}
	return t.Write(w, s)
}

// printCSV writes RFC 4180; NULL is empty.
func printCSV(w io.Writer, r rowsOf) error {
	out := csv.NewWriter(w)
	lines := [][]string{r.columns}
	for _, row := range r.texts {
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
