package pg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DefaultSchema is the control schema's name in SQL texts.
const DefaultSchema = "kappactl"

// DB is the interface of stores to the database; Pool and Tx implement it.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// schema is the control schema in use. It replaces DefaultSchema in SQL texts.
type schema string

func (s schema) sql(text string) string {
	if s == DefaultSchema {
		return text
	}
	return strings.ReplaceAll(text, DefaultSchema+".", pgx.Identifier{string(s)}.Sanitize()+".")
}

// Tx is a transaction.
type Tx struct {
	tx     pgx.Tx
	schema schema
	answer patience

	timeoutsLifted bool // the role's timeouts are lifted
}

// Exec runs a statement.
func (t *Tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	ctx, end := t.answer.bound(ctx)
	defer end()
	if err := t.lift(ctx); err != nil {
		return pgconn.CommandTag{}, unanswered(ctx, err)
	}
	tag, err := t.tx.Exec(ctx, t.schema.sql(sql), args...)
	return tag, unanswered(ctx, err)
}

// Query runs a query.
func (t *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.lift(ctx); err != nil {
		return nil, err
	}
	return t.answer.query(ctx, t.tx, t.schema.sql(sql), args)
}

// QueryRow runs a query that returns one row.
func (t *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := t.lift(ctx); err != nil {
		return failedRow{err}
	}
	return t.answer.queryRow(ctx, t.tx, t.schema.sql(sql), args)
}

// failedRow is the row of a query that could not be sent.
type failedRow struct{ err error }

// Scan returns the error.
func (r failedRow) Scan(...any) error { return r.err }

// lift removes the role's timeouts before the transaction's first Long statement.
func (t *Tx) lift(ctx context.Context) error {
	if t.timeoutsLifted || !isLong(ctx) {
		return nil
	}
	ctx, end := context.WithTimeout(ctx, t.answer.answer)
	defer end()
	_, err := t.tx.Exec(ctx, sqlLiftTimeouts)
	t.timeoutsLifted = err == nil
	return err
}

// Raw returns the pgx transaction. It runs SQL unchanged (a user's text, COPY).
func (t *Tx) Raw() pgx.Tx { return rawTx{t.tx, t.answer} }

// One runs exactly one statement. SQL of a job file must use it, because Exec without arguments would also run
// statements after a semicolon.
func One(ctx context.Context, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, sql string,
) error {
	rows, err := db.Query(ctx, sql)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

// Interval returns d in microseconds as text for a parameter that is cast to interval.
func Interval(d time.Duration) string { return fmt.Sprintf("%d microseconds", d.Microseconds()) }

// Ident quotes an identifier of one or more parts.
func Ident(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

// Collect runs a query and returns its rows.
func Collect[T any](ctx context.Context, db DB, row pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, row)
}

// Structs runs a query and returns its rows as structs, by the names of their columns. args may be nil.
func Structs[T any](ctx context.Context, db DB, sql string, args pgx.NamedArgs) ([]T, error) {
	return Collect(ctx, db, pgx.RowToStructByName[T], sql, args)
}

// UniqueKey returns the column list, in parentheses, for a unique index and its ON CONFLICT. Without columns it is the
// constant true, so that the table holds at most one row.
func UniqueKey(columns []string) string {
	if len(columns) == 0 {
		return "((true))"
	}
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = Ident(c)
	}
	return "(" + strings.Join(quoted, ", ") + ")"
}

// errProbed makes a probe's transaction roll back.
var errProbed = errors.New("probed")

// Probe runs f in a transaction of a pool, or in a savepoint of a transaction, and rolls it back.
func Probe(ctx context.Context, db DB, f func(pgx.Tx) error) error {
	probe := func(tx *Tx) (err error) {
		save, err := tx.Raw().Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, save.Rollback(ctx)) }()
		return f(save)
	}
	switch d := db.(type) {
	case *Tx:
		return probe(d)
	case *Pool:
		err := d.ReadCommitted(ctx, func(tx *Tx) error { return cmp.Or(probe(tx), errProbed) })
		if errors.Is(err, errProbed) {
			return nil
		}
		return err
	}
	return fmt.Errorf("%T begins no transactions", db)
}
