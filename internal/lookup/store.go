package lookup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/job/strict"
	"github.com/kappactl/kappactl/internal/pg"
)

// Question chooses rows of a view.
type Question struct {
	View  job.ViewName
	Keys  []string // columns that order the rows; without any, all columns do
	Equal []Equal
	Limit int
}

// Equal keeps the rows in which Column has the value that PostgreSQL reads from the text Value.
type Equal struct{ Column, Value string }

// Rows are the rows as PostgreSQL prints them, with nil for NULL, and each as one JSON object.
type Rows struct {
	Columns []string
	Texts   [][]*string
	Objects []json.RawMessage
	More    bool // the view has more rows than the limit
}

// Read reads the rows. A column that the view lacks, or a value that is not of the column's type, is a *job.Refusal.
func Read(ctx context.Context, tx *pg.Tx, q Question) (Rows, error) {
	columns, err := Columns(ctx, tx, q.View)
	if err != nil {
		return Rows{}, err
	}
	sql, args, err := q.statement(columns)
	if err != nil {
		return Rows{}, err
	}
	if err := q.values(ctx, tx, columns); err != nil {
		return Rows{}, err
	}
	found, err := tx.Raw().Query(ctx, sql, args...)
	if err != nil {
		return Rows{}, err
	}
	texts, err := pgx.CollectRows(found, func(r pgx.CollectableRow) ([]*string, error) {
		values := make([]*string, len(columns)+1)
		targets := make([]any, len(values))
		for i := range values {
			targets[i] = &values[i]
		}
		return values, r.Scan(targets...)
	})
	if pgerrcode.IsDataException(pg.Code(err)) {
		return Rows{}, &job.Refusal{
			Code: job.ExitUnhealthy, Cause: "a row of " + q.View.String() + " cannot be read: " + pg.Message(err),
			Next: "correct serve.columns or serve.where in the job file, then kappactl deploy FILE", Err: err,
		}
	}
	if err != nil {
		return Rows{}, fmt.Errorf("read %s: %w", q.View, err)
	}
	return q.rows(columns, texts), nil
}

// values refuses a value that is not of its column's type. Only after that is an error of the view's own expressions
// told from one of a value.
func (q Question) values(ctx context.Context, tx *pg.Tx, columns []Column) error {
	for _, e := range q.Equal {
		i := slices.IndexFunc(columns, func(c Column) bool { return c.Name == e.Column })
		if i < 0 {
			continue
		}
		_, err := tx.Raw().Exec(ctx, "SELECT ($1::text)::"+columns[i].Type, e.Value)
		if pgerrcode.IsDataException(pg.Code(err)) {
			return &job.Refusal{Code: job.ExitUsage, Cause: pg.Message(err), Next: "give a value of the column's type", Err: err}
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", q.View, err)
		}
	}
	return nil
}

// rows returns what the statement returned, up to the limit.
func (q Question) rows(columns []Column, texts [][]*string) Rows {
	out := Rows{Columns: names(columns), More: len(texts) > q.Limit}
	for _, t := range texts[:min(len(texts), q.Limit)] {
		out.Objects = append(out.Objects, json.RawMessage(*t[0]))
		out.Texts = append(out.Texts, t[1:])
	}
	return out
}

// statement returns one SELECT: each row as JSON, then its columns as text. Values are compared as values of the
// columns' types.
func (q Question) statement(columns []Column) (sql string, args []any, err error) {
	where, args, err := q.conditions(columns)
	if err != nil {
		return "", nil, err
	}
	texts := make([]string, len(columns))
	for i, c := range columns {
		texts[i] = "(q." + pg.Ident(c.Name) + ")::text"
	}
	rows := fmt.Sprintf("SELECT * FROM %s AS q%s", pg.Ident(q.View.Schema, q.View.Name), where)
	var order []string
	for _, k := range q.Keys {
		order = append(order, "q."+pg.Ident(k))
	}
	if len(order) > 0 {
		rows += " ORDER BY " + strings.Join(order, ", ") // the version table has an index on its keys
	} else {
		// Order only the rows that are shown: ordering all rows would read the whole view.
		for _, text := range texts {
			order = append(order, text+` COLLATE "C"`)
		}
	}
	return fmt.Sprintf("SELECT row_to_json(q)::text, %s FROM (%s LIMIT %d) AS q ORDER BY %s",
		strings.Join(texts, ", "), rows, q.Limit+1, strings.Join(order, ", ")), args, nil
}

// conditions returns the WHERE clause of Equal, or nothing, and its arguments.
func (q Question) conditions(columns []Column) (where string, args []any, err error) {
	types := map[string]string{}
	for _, c := range columns {
		types[c.Name] = c.Type
	}
	var all []string
	for _, e := range q.Equal {
		typ, known := types[e.Column]
		if !known {
			return "", nil, &job.Refusal{
				Code: job.ExitUsage, Cause: fmt.Sprintf("%s has no column %q", q.View, e.Column),
				Next: strict.Suggest(e.Column, names(columns)),
			}
		}
		args = append(args, e.Value)
		all = append(all, fmt.Sprintf("q.%s = ($%d::text)::%s", pg.Ident(e.Column), len(args), typ))
	}
	if len(all) > 0 {
		where = " WHERE " + strings.Join(all, " AND ")
	}
	return where, args, nil
}

// Column is a column of a view; Type is its type as SQL.
type Column struct{ Name, Type string }

func names(columns []Column) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = c.Name
	}
	return out
}

// Columns returns the columns of a view in order.
func Columns(ctx context.Context, tx *pg.Tx, view job.ViewName) ([]Column, error) {
	columns, err := pg.Collect(ctx, tx, func(r pgx.CollectableRow) (c Column, err error) {
		return c, r.Scan(&c.Name, &c.Type)
	}, `SELECT a.attname::text, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a
		JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = @schema AND c.relname = @name AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
		pgx.NamedArgs{"schema": view.Schema, "name": view.Name})
	if err == nil && len(columns) == 0 {
		err = errors.New("it is gone")
	}
	if err != nil {
		return nil, fmt.Errorf("read the columns of %s: %w", view, err)
	}
	return columns, nil
}
