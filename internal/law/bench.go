package law

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
)

// Statements are the SQL texts that write a version's rows; implemented by speedlayer.Store.
type Statements interface {
	Merge(ref job.Ref, schema string, l job.Layout) string
	Rebuild(ref job.Ref, schema string, l job.Layout) []string
}

// Views says how a version is read; implemented by serving.Store.
type Views interface {
	Select(ref job.Ref, schema string, l job.Layout) string
}

// Deps is what parts are merged with.
type Deps struct {
	Pool       *pg.Pool
	Statements Statements
	Views      Views
	// StagingColumn is the column of a staging table in front of those of the layout.
	StagingColumn string
	Fillfactor    int // of version tables; only sizes depend on it
}

// tempSchema is what PostgreSQL calls the temporary tables of a session, whichever it is.
const tempSchema = "pg_temp"

// Bench is a version in temporary tables. One goroutine owns it.
type Bench struct {
	deps     Deps
	tx       *pg.Tx
	ref      job.Ref
	compiled *query.Compiled
	layout   job.Layout
	run      *Runner
}

var errDone = errors.New("everything is rolled back")

// In makes the temporary tables of a version with that many lanes, hands them to f and rolls everything back.
func (d Deps) In(ctx context.Context, r *Runner, lanes int, f func(*Bench) error) error {
	err := d.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		b := &Bench{deps: d, tx: tx, ref: job.Ref{Job: r.spec.Job, Number: 1}, compiled: r.compiled, layout: r.compiled.Layout, run: r}
		b.layout.Lanes = lanes
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

// create makes the version's and the staging table.
func (b *Bench) create(ctx context.Context) error {
	names, types := b.layout.StagedColumns()
	columns := make([]string, len(names))
	for i := range names {
		columns[i] = pg.Ident(names[i]) + " " + types[i]
	}
	keys := make([]string, 0, 1+len(b.layout.Keys))
	for _, k := range b.layout.Keys {
		keys = append(keys, pg.Ident(k.Name))
	}
	keys = append(keys, pg.Ident(job.LaneColumn))
	table := pg.Ident(tempSchema, b.ref.Table())
	for _, sql := range []string{
		"SET LOCAL extra_float_digits = 1", "SET LOCAL IntervalStyle = 'postgres'", "SET LOCAL array_nulls = on",
		fmt.Sprintf("CREATE TEMP TABLE %s (%s) WITH (fillfactor = %d) ON COMMIT DROP", pg.Ident(b.ref.Table()), strings.Join(columns, ", "), max(10, b.deps.Fillfactor)),
		fmt.Sprintf("CREATE UNIQUE INDEX ON %s (%s) NULLS NOT DISTINCT", table, strings.Join(keys, ", ")),
		fmt.Sprintf("CREATE TEMP TABLE %s (%s bigint, %s) ON COMMIT DROP", pg.Ident(b.ref.Staging()), pg.Ident(b.deps.StagingColumn), strings.Join(columns, ", ")),
	} {
		if _, err := b.tx.Raw().Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// Merge runs PARTIAL over one part and merges its rows as a live commit does.
func (b *Bench) Merge(ctx context.Context, part []*kgo.Record) error {
	rows, err := b.partial(ctx, part)
	if err != nil || len(rows) == 0 {
		return err
	}
	if _, err := b.tx.Raw().Exec(ctx, b.deps.Statements.Merge(b.ref, tempSchema, b.layout), columnsOf(rows)...); err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	return nil
}

// Stage runs PARTIAL over one part and stages its rows as a segment does.
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
	names, types := b.layout.StagedColumns()
	into, from, params, aliases := []string{pg.Ident(b.deps.StagingColumn)}, []string{fmt.Sprint(segment)}, []string{}, []string{}
	for i := range names {
		into = append(into, pg.Ident(names[i]))
		from = append(from, fmt.Sprintf("a.c%d::%s", i, types[i]))
		params = append(params, fmt.Sprintf("$%d::text[]", i+1))
		aliases = append(aliases, fmt.Sprintf("c%d", i))
	}
	sql := fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM unnest(%s) AS a (%s)", pg.Ident(tempSchema, b.ref.Staging()),
		strings.Join(into, ", "), strings.Join(from, ", "), strings.Join(params, ", "), strings.Join(aliases, ", "))
	if _, err := b.tx.Raw().Exec(ctx, sql, columnsOf(rows)...); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	return nil
}

// Rebuild replaces the version table by the merge of what is staged, as the end of a replay does.
func (b *Bench) Rebuild(ctx context.Context) error {
	for _, sql := range b.deps.Statements.Rebuild(b.ref, tempSchema, b.layout) {
		if _, err := b.tx.Raw().Exec(ctx, sql); err != nil {
			return fmt.Errorf("merge what is staged: %w", err)
		}
	}
	return nil
}

// Served are the rows as readers see them, as PostgreSQL prints them: with the computed columns and the condition of the
// view, or the query's own columns only, and of appended rows their place in the log.
func (b *Bench) Served(ctx context.Context, whole bool) ([]Row, error) {
	l := b.layout
	l.Keep = nil // whether a row is kept depends on the day
	if !whole {
		l.Where, l.View = "", b.columns()
	}
	items := make([]string, len(l.View))
	for i, v := range l.View {
		items[i] = "(q." + pg.Ident(v.Name) + ")::text"
	}
	return b.texts(ctx, fmt.Sprintf("SELECT %s FROM (%s\n) AS q", strings.Join(items, ", "), b.deps.Views.Select(b.ref, tempSchema, l)))
}

// Spelled are rows of the columns of Served, spelled as PostgreSQL prints them.
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
	sql := fmt.Sprintf("SELECT %s FROM unnest(%s) AS a (%s)", strings.Join(items, ", "), strings.Join(params, ", "), strings.Join(aliases, ", "))
	return b.texts(ctx, sql, columnsOf(rows)...)
}

// Convert spells a value of a view column as PostgreSQL prints it.
func (b *Bench) Convert(ctx context.Context, typ, value string) (string, error) {
	var out string
	nested, err := b.tx.Raw().Begin(ctx) // a savepoint: a wrong value must not end the transaction
	if err != nil {
		return "", err
	}
	defer func() { _ = nested.Rollback(ctx) }()
	err = nested.QueryRow(ctx, fmt.Sprintf("SELECT ($1::text)::%s::text", typ), value).Scan(&out)
	return out, err
}

// Types are the types of the view's columns, computed ones too. SQL below serve that PostgreSQL refuses is a *ServeError.
func (b *Bench) Types(ctx context.Context) (map[string]string, error) {
	rows, err := b.tx.Raw().Query(ctx, fmt.Sprintf("SELECT * FROM (%s\n) AS q LIMIT 0", b.deps.Views.Select(b.ref, tempSchema, b.layout)))
	if err != nil {
		return nil, serveError(err)
	}
	var names []string
	var oids []int64
	var modifiers []int32
	for _, f := range rows.FieldDescriptions() {
		names, oids, modifiers = append(names, f.Name), append(oids, int64(f.DataTypeOID)), append(modifiers, f.TypeModifier)
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return nil, serveError(err)
	}
	printed, err := b.texts(ctx, "SELECT format_type(o::oid, m) FROM unnest($1::bigint[], $2::integer[]) WITH ORDINALITY AS u (o, m, n) ORDER BY n", oids, modifiers)
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
	return b.run.texts(ctx, b.compiled.Land(b.layout.Lanes), b.compiled.FieldsFor(b.layout.Lanes), part)
}

// columns are what the law compares.
func (b *Bench) columns() []job.ViewColumn { return own(b.layout.Audited().View) }

// own are the query's columns of a view.
func own(view []job.ViewColumn) []job.ViewColumn {
	var out []job.ViewColumn
	for _, v := range view {
		if !v.Computed {
			out = append(out, v)
		}
	}
	return out
}

// columnsOf are rows by column, as text[] parameters.
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
