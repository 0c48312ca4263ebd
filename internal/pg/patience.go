package pg

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// defaultAnswer is the time limit of a statement if neither its context nor the Config sets one.
const defaultAnswer = 30 * time.Second

type longKey struct{}

// Long marks statements that may take longer than Config.Answer: filling a table, building an index, a check of a job
// file. If the server is gone, the connection's own probes end them (see dial); for an agent, polling the backend does
// too (see watched). Timeouts set for the role or the database do not apply to them either, except to statements that
// cannot run in a transaction (CONCURRENTLY) and to those run through Raw.
func Long(ctx context.Context) context.Context { return context.WithValue(ctx, longKey{}, true) }

// sqlLiftTimeouts lifts the timeouts that a role or a database may have set for its sessions, until the end of the
// transaction. The second exists since PostgreSQL 17.
const sqlLiftTimeouts = `SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout') AND setting <> '0'`

// lifted returns sql with these timeouts lifted. Several statements in one text are one transaction.
func lifted(ctx context.Context, sql string, args []any) string {
	if isLong(ctx) && len(args) == 0 && !strings.Contains(sql, "CONCURRENTLY") {
		return sqlLiftTimeouts + "; " + sql
	}
	return sql
}

// patience bounds the time of statements, because a connection can remain open although its peer is gone and no answer
// will come.
type patience struct {
	answer time.Duration
	// called when the server turns out to be read-only; may be nil
	turned func()
	watch  func(context.Context) (context.Context, context.CancelFunc) // for Long statements; may be nil
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

// note inspects how a statement ended.
func (p patience) note(err error) {
	if p.turned != nil && ReadOnly(err) {
		p.turned()
	}
}

// boundRows releases the time limit with the rows.
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

// Err returns why the rows ended.
func (r boundRows) Err() error { return unanswered(r.ctx, r.Rows.Err()) }

// boundRow releases the time limit when it is scanned.
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

// querier is the common interface of a pgx pool and a pgx transaction.
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

// rawTx is a pgx transaction whose statements are bounded like those of a Tx.
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

// QueryRow runs a query that returns one row.
func (t rawTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return t.answer.queryRow(ctx, t.Tx, sql, args)
}
