package mergecheck

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/internal/reach"
)

// Statements builds the SQL that writes a version's rows; speedlayer.Store implements it.
type Statements interface {
	Merge(v job.Version) string
	Rebuild(v job.Version) []string
}

// Views builds the SQL that reads a version and finds what its SQL reaches beyond the job; serving.Store implements it.
type Views interface {
	Select(v job.Version) string
	Breaches(ctx context.Context, tx pgx.Tx, v job.Version, limit reach.Limit) ([]reach.Placed, error)
}

// Deps holds the database, the statements of the agents and the settings that a merge runs with.
type Deps struct {
	Pool       *pg.Pool
	Statements Statements
	Views      Views
	// StagingColumn is the name of the staging table's first column, which precedes those of the layout.
	StagingColumn string
	Fillfactor    int // of version tables; affects only their size
	// Agent is the PostgreSQL role of the agents that will serve the job; empty means the session's own role.
	Agent string
}

// tempSchema is PostgreSQL's alias of a session's schema for temporary tables.
const tempSchema = "pg_temp"

// Bench holds a version in temporary tables. One goroutine owns it.
type Bench struct {
	deps     Deps
	tx       *pg.Tx
	version  job.Version
	compiled *query.Compiled
	run      *Runner
}

var errDone = errors.New("everything is rolled back")

// In creates the temporary tables of a version, passes them to f and rolls everything back.
func (d Deps) In(ctx context.Context, r *Runner, f func(*Bench) error) error {
	err := d.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		b := &Bench{deps: d, tx: tx, compiled: r.compiled, run: r}
		b.version = job.Version{Ref: job.Ref{Job: r.spec.Job, Number: 1}, Schema: tempSchema, Layout: r.compiled.Layout}
		b.version.Layout.Lambda = false // that states merge is a matter of one table
		if err := b.create(ctx); err != nil {
			return fmt.Errorf("make temporary tables: %w", err)
		}
		if err := f(b); err != nil {
			return err
		}
		return errDone
	})
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// create creates the version table and the staging table.
func (b *Bench) create(ctx context.Context) error {
	names, types := b.version.Layout.StagedColumns()
	columns := make([]string, len(names))
	for i := range names {
		columns[i] = pg.Ident(names[i]) + " " + types[i]
	}
	table := pg.Ident(tempSchema, b.version.Table())
	for _, sql := range []string{
		"SET LOCAL extra_float_digits = 1", "SET LOCAL IntervalStyle = 'postgres'", "SET LOCAL array_nulls = on",
		fmt.Sprintf("CREATE TEMP TABLE %s (%s) WITH (fillfactor = %d) ON COMMIT DROP", pg.Ident(b.version.Table()),
			strings.Join(columns, ", "), max(10, b.deps.Fillfactor)),
		fmt.Sprintf("CREATE UNIQUE INDEX ON %s %s NULLS NOT DISTINCT", table, pg.UniqueKey(b.version.Layout.KeyNames())),
		fmt.Sprintf("CREATE TEMP TABLE %s (%s bigint, %s) ON COMMIT DROP", pg.Ident(b.version.Staging()),
			pg.Ident(b.deps.StagingColumn), strings.Join(columns, ", ")),
	} {
		if _, err := b.tx.Raw().Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// Merge runs PARTIAL over one part and merges its rows into the version table, as a live commit does.
func (b *Bench) Merge(ctx context.Context, part []*kgo.Record) error {
	rows, err := b.partial(ctx, part)
	if err != nil || len(rows) == 0 {
		return err
	}
	if _, err := b.tx.Raw().Exec(ctx, b.deps.Statements.Merge(b.version), columnsOf(rows)...); err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	return nil
}

// Stage runs PARTIAL over one part and inserts its rows into the staging table, as a replay segment does.
func (b *Bench) Stage(ctx context.Context, segment int, part []*kgo.Record) error {
	rows, err := b.partial(ctx, part)
	if err != nil {
		return err
	}
	return b.stage(ctx, segment, rows)
}

func (b *Bench) stage(ctx context.Context, segment int, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	names, types := b.version.Layout.StagedColumns()
	into, from, params, aliases := []string{pg.Ident(b.deps.StagingColumn)}, []string{fmt.Sprint(segment)}, []string{},
		[]string{}
	for i := range names {
		into = append(into, pg.Ident(names[i]))
		from = append(from, fmt.Sprintf("a.c%d::%s", i, types[i]))
		params = append(params, fmt.Sprintf("$%d::text[]", i+1))
		aliases = append(aliases, fmt.Sprintf("c%d", i))
	}
	sql := fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM unnest(%s) AS a (%s)",
		pg.Ident(tempSchema, b.version.Staging()),
		strings.Join(into, ", "), strings.Join(from, ", "), strings.Join(params, ", "), strings.Join(aliases, ", "))
	if _, err := b.tx.Raw().Exec(ctx, sql, columnsOf(rows)...); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	return nil
}

// Rebuild replaces the version table's rows with the merged staged rows, as the end of a replay does.
func (b *Bench) Rebuild(ctx context.Context) error {
	for _, sql := range b.deps.Statements.Rebuild(b.version) {
		if _, err := b.tx.Raw().Exec(ctx, sql); err != nil {
			return fmt.Errorf("merge staged rows: %w", err)
		}
	}
	return nil
}

// Served returns the rows that readers of the view see, as PostgreSQL prints them. If whole is set they include the
// computed columns and only rows that satisfy serve.where. Otherwise they hold only the query's own columns and, for
// appended rows, their place in the log.
func (b *Bench) Served(ctx context.Context, whole bool) ([]Row, error) {
	v := b.version
	v.Layout.Keep = nil // whether serve.keep retains a row depends on the date
	if !whole {
		v.Layout = v.Layout.Whole()
	}
	items := make([]string, len(v.Layout.View))
	for i, c := range v.Layout.View {
		items[i] = "(q." + pg.Ident(c.Name) + ")::text"
	}
	return b.texts(ctx, fmt.Sprintf("SELECT %s FROM (%s\n) AS q", strings.Join(items, ", "), b.deps.Views.Select(v)))
}

// Spelled returns rows of Served's columns with each value as PostgreSQL prints it.
func (b *Bench) Spelled(ctx context.Context, rows []Row) ([]Row, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	var items, params, aliases []string
	for i, v := range b.columns() {
		items = append(items, fmt.Sprintf("a.c%d::%s::text", i, v.Type))
		params = append(params, fmt.Sprintf("$%d::text[]", i+1))
		aliases = append(aliases, fmt.Sprintf("c%d", i))
	}
	sql := fmt.Sprintf("SELECT %s FROM unnest(%s) AS a (%s)", strings.Join(items, ", "), strings.Join(params, ", "),
		strings.Join(aliases, ", "))
	return b.texts(ctx, sql, columnsOf(rows)...)
}

// Convert returns a value of a view column as PostgreSQL prints it.
func (b *Bench) Convert(ctx context.Context, typ, value string) (string, error) {
	var out string
	nested, err := b.tx.Raw().Begin(ctx) // a savepoint: an invalid value must not end the transaction
	if err != nil {
		return "", err
	}
	defer func() { _ = nested.Rollback(ctx) }()
	err = nested.QueryRow(ctx, fmt.Sprintf("SELECT ($1::text)::%s::text", typ), value).Scan(&out)
	return out, err
}

// Types returns the types of the view's columns by name, including computed columns. The error is a *ServeError if
// PostgreSQL refuses SQL of serve.
func (b *Bench) Types(ctx context.Context) (map[string]string, error) {
	rows, err := b.tx.Raw().Query(ctx, fmt.Sprintf("SELECT * FROM (%s\n) AS q LIMIT 0", b.deps.Views.Select(b.version)))
	if err != nil {
		return nil, b.serveError(err)
	}
	var names []string
	var oids []int64
	var modifiers []int32
	for _, f := range rows.FieldDescriptions() {
		names, oids, modifiers = append(names, f.Name), append(oids, int64(f.DataTypeOID)), append(modifiers, f.TypeModifier)
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return nil, b.serveError(err)
	}
	printed, err := b.texts(ctx,
		"SELECT format_type(o::oid, m) FROM unnest($1::bigint[], $2::integer[]) WITH ORDINALITY AS u (o, m, n) ORDER BY n",
		oids, modifiers)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(names))
	for i, name := range names {
		out[name] = *printed[i][0]
	}
	return out, nil
}

func (b *Bench) texts(ctx context.Context, sql string, args ...any) ([]Row, error) {
	rows, err := b.tx.Raw().Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (Row, error) {
		values := make(Row, len(r.FieldDescriptions()))
		targets := make([]any, len(values))
		for i := range values {
			targets[i] = &values[i]
		}
		return values, r.Scan(targets...)
	})
}

func (b *Bench) partial(ctx context.Context, part []*kgo.Record) ([]Row, error) {
	return b.run.texts(ctx, b.compiled.Land(), b.compiled.Fields, part)
}

// columns returns the view columns that the merge check compares.
func (b *Bench) columns() []job.ViewColumn { return b.version.Layout.Whole().View }

// columnsOf transposes rows into one text[] parameter per column.
func columnsOf(rows []Row) []any {
	columns := make([]any, len(rows[0]))
	for i := range columns {
		values := make([]*string, len(rows))
		for j := range rows {
			values[j] = rows[j][i]
		}
		columns[i] = values
	}
	return columns
}
