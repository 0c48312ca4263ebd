package pg

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DefaultSchema is the control schema's name in SQL texts.
const DefaultSchema = "kappactl"

// DB is what a store needs; a Pool and a Tx both are one.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// schema rewrites SQL texts from DefaultSchema to the schema in use.
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

	unhurried bool // the timeouts of the role are lifted
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

// QueryRow runs a query of one row.
func (t *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := t.lift(ctx); err != nil {
		return failedRow{err}
	}
	return t.answer.queryRow(ctx, t.tx, t.schema.sql(sql), args)
}

// failedRow is a row that could not be asked for.
type failedRow struct{ err error }

// Scan gives the error.
func (r failedRow) Scan(...any) error { return r.err }

// lift takes the timeouts of the role away before the first Long statement of the transaction.
func (t *Tx) lift(ctx context.Context) error {
	if t.unhurried || !isLong(ctx) {
		return nil
	}
	ctx, end := context.WithTimeout(ctx, t.answer.answer)
	defer end()
	_, err := t.tx.Exec(ctx, unhurried)
	t.unhurried = err == nil
	return err
}

// Raw is the pgx transaction: SQL given to it (a user's text, COPY) is taken as it is.
func (t *Tx) Raw() pgx.Tx { return rawTx{t.tx, t.answer} }

// One runs exactly one statement. A text that holds SQL of a job file goes this way: Exec without arguments would also run what comes
// behind a semicolon.
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

// Interval is d as text for a parameter that is cast to interval, in microseconds.
func Interval(d time.Duration) string { return fmt.Sprintf("%d microseconds", d.Microseconds()) }

// Ident quotes an identifier of one or more parts.
func Ident(parts ...string) string { return pgx.Identifier(parts).Sanitize() }
