package pg

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// defaultAnswer is how long a statement is waited for when neither its context nor the Config says.
const defaultAnswer = 30 * time.Second

type longKey struct{}

// Long marks statements that may rightly take longer than Config.Answer: filling a table, making an index, a check of a
// job file. What ends them when the server is gone is the connection's own watch (see dial), and for an agent a look at the backend
// (see watched).
// A timeout that the role or the database has set does not end them either, but for what cannot run in a transaction (CONCURRENTLY)
// and what is given to Raw.
func Long(ctx context.Context) context.Context { return context.WithValue(ctx, longKey{}, true) }

// unhurried lifts, up to the end of the transaction, the timeouts that a role or a database may have set for each of its sessions;
// the second is there from release 17 on.
const unhurried = `SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout') AND setting <> '0'`

// lifted is sql without those timeouts: several statements in one text are one transaction.
func lifted(ctx context.Context, sql string, args []any) string {
	if isLong(ctx) && len(args) == 0 && !strings.Contains(sql, "CONCURRENTLY") {
		return unhurried + "; " + sql
	}
	return sql
}

// patience bounds a statement: a connection can stay open with nobody behind it, and its answer would never come.
type patience struct {
	answer time.Duration
	turned func()                                                      // called when the server turns out to be read-only; may be nil
	watch  func(context.Context) (context.Context, context.CancelFunc) // of Long statements; may be nil
}

func isLong(ctx context.Context) bool {
	_, bounded := ctx.Deadline()
	return !bounded && ctx.Value(longKey{}) != nil
}

func (p patience) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if isLong(ctx) && p.watch != nil {
		return p.watch(ctx)
	}
	if _, bounded := ctx.Deadline(); bounded || isLong(ctx) {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, p.answer)
}

// note looks at how a statement ended.
func (p patience) note(err error) {
	if p.turned != nil && ReadOnly(err) {
		p.turned()
	}
}

// boundRows ends the patience with the rows.
type boundRows struct {
	pgx.Rows
	ctx  context.Context //nolint:containedctx // that of the query, whose end is its cause
	end  context.CancelFunc
	note func(error)
}

// Close closes the rows.
func (r boundRows) Close() {
	r.Rows.Close()
	r.note(r.Err())
	r.end()
}

// Err is why the rows ended.
func (r boundRows) Err() error { return unanswered(r.ctx, r.Rows.Err()) }

// boundRow ends the patience when it is scanned.
type boundRow struct {
	pgx.Row
	ctx  context.Context //nolint:containedctx // that of the query, whose end is its cause
	end  context.CancelFunc
	note func(error)
}

// Scan reads the row.
func (r boundRow) Scan(dest ...any) error {
	defer r.end()
	err := r.Row.Scan(dest...)
	r.note(err)
	return unanswered(r.ctx, err)
}

// querier is what a pool and a transaction of pgx have in common.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func (p patience) query(ctx context.Context, q querier, sql string, args []any) (pgx.Rows, error) {
	ctx, end := p.bound(ctx)
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		end()
		return nil, unanswered(ctx, err)
	}
	return boundRows{rows, ctx, end, p.note}, nil
}

func (p patience) queryRow(ctx context.Context, q querier, sql string, args []any) pgx.Row {
	ctx, end := p.bound(ctx)
	return boundRow{q.QueryRow(ctx, sql, args...), ctx, end, p.note}
}

// rawTx is a transaction of pgx whose statements are bounded like those of a Tx.
type rawTx struct {
	pgx.Tx
	answer patience
}

// Begin opens a savepoint.
func (t rawTx) Begin(ctx context.Context) (pgx.Tx, error) {
	bound, end := t.answer.bound(ctx)
	defer end()
	tx, err := t.Tx.Begin(bound)
	if err != nil {
		return nil, err
	}
	return rawTx{tx, t.answer}, nil
}

// Exec runs a statement.
func (t rawTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	ctx, end := t.answer.bound(ctx)
	defer end()
	tag, err := t.Tx.Exec(ctx, sql, args...)
	return tag, unanswered(ctx, err)
}

// Query runs a query.
func (t rawTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return t.answer.query(ctx, t.Tx, sql, args)
}

// QueryRow runs a query of one row.
func (t rawTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return t.answer.queryRow(ctx, t.Tx, sql, args)
}
