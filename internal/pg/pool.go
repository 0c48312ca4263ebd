package pg

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says how to reach PostgreSQL. Zero fields mean the defaults set in Open.
type Config struct {
	DSN         string        // URL or key=value; PG* variables fill what it lacks
	Password    string        // from a file or command; empty leaves DSN, PGPASSWORD and passfile in charge
	Schema      string        // control schema, default kappactl
	Application string        // application_name, default kappactl
	MaxConns    int32         // default 8
	Connect     time.Duration // connect timeout, default 5 s
	Idle        time.Duration // how long a transaction may stand still between two statements before the server ends it; 0: for ever
	Answer      time.Duration // for a statement whose context has no deadline and is not Long, default 30 s
	Mark        string        // whose the ReadCommitted transactions are, so that EndStuck finds them; empty: nobody's
}

// Pool is a pool of connections to one database.
type Pool struct {
	pool   *pgxpool.Pool
	schema schema
	answer patience
	idle   time.Duration
	owner  string
	direct bool // its connections have the numbers of their backends
}

// Open opens a pool and proves that one connection works. The error names no password.
func Open(ctx context.Context, c Config) (*Pool, error) {
	cfg, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, &ConnectError{Err: badDSN(err)}
	}
	if c.Password != "" {
		cfg.ConnConfig.Password = c.Password
	}
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = or(c.Application, "kappactl")
	}
	maps.Copy(cfg.ConnConfig.RuntimeParams, plainSessions())
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = or(c.Connect, 5*time.Second)
	}
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.ConnConfig.DialFunc = dial
	cfg.MaxConns = or(c.MaxConns, 8)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, newConnectError(cfg.ConnConfig, err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, newConnectError(cfg.ConnConfig, err)
	}
	direct := c.Mark != "" && reachesBackends(ctx, pool)
	// After a failover old connections may still lead to the server that was the primary: new ones find the one that is.
	return &Pool{
		pool: pool, schema: schema(or(c.Schema, DefaultSchema)), idle: c.Idle, owner: c.Mark, direct: direct,
		answer: patience{answer: or(c.Answer, defaultAnswer), turned: pool.Reset},
	}, nil
}

// plainSessions are what every session relies on, whatever the role or the database has set: values travel as text, in UTF-8, and
// times in the one style that pgx reads. They are those that a pooler keeps for each of its clients.
func plainSessions() map[string]string {
	return map[string]string{"datestyle": "ISO, MDY", "client_encoding": "UTF8", "standard_conforming_strings": "on"}
}

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// Close closes all connections.
func (p *Pool) Close() { p.pool.Close() }

// Schema is the control schema's name.
func (p *Pool) Schema() string { return string(p.schema) }

// Exec runs a statement. The tag is that of the last one of several.
func (p *Pool) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if p.direct && isLong(ctx) {
		return p.execLong(ctx, sql, args)
	}
	ctx, end := p.answer.bound(ctx)
	defer end()
	tag, err := p.pool.Exec(ctx, lifted(ctx, p.schema.sql(sql), args), args...)
	p.answer.note(err)
	return tag, err
}

// execLong runs a Long statement on a connection whose backend is watched.
func (p *Pool) execLong(ctx context.Context, sql string, args []any) (pgconn.CommandTag, error) {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer conn.Release()
	ctx, end := p.watched(ctx, conn.Conn().PgConn().PID())
	defer end()
	tag, err := conn.Exec(ctx, lifted(ctx, p.schema.sql(sql), args), args...)
	p.answer.note(err)
	return tag, unanswered(ctx, err)
}

// Query runs a query.
func (p *Pool) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return p.answer.query(ctx, p.pool, p.schema.sql(sql), args)
}

// QueryRow runs a query of one row.
func (p *Pool) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return p.answer.queryRow(ctx, p.pool, p.schema.sql(sql), args)
}

// How transactions begin.
const (
	readCommitted  = "begin isolation level read committed"
	repeatableRead = "begin isolation level repeatable read"
	readOnly       = "begin isolation level repeatable read read only"
)

// ReadCommitted runs f in a READ COMMITTED transaction and commits when f returns nil.
func (p *Pool) ReadCommitted(ctx context.Context, f func(*Tx) error) error {
	return p.in(ctx, readCommitted, f)
}

// Snapshot runs f in a REPEATABLE READ transaction, whose statements all see the database of its first one.
func (p *Pool) Snapshot(ctx context.Context, f func(*Tx) error) error {
	return p.in(ctx, repeatableRead, f)
}

// ReadOnly runs f in a REPEATABLE READ transaction that cannot write.
func (p *Pool) ReadOnly(ctx context.Context, f func(*Tx) error) error {
	return p.in(ctx, readOnly, f)
}

func (p *Pool) in(ctx context.Context, begin string, f func(*Tx) error) error {
	tx, err := p.begin(ctx, begin)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		// After Commit this is a no-op; a cancelled ctx must not leave the connection in a transaction.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = tx.Rollback(end)
	}()
	conn := tx.Conn().PgConn()
	if err := f(&Tx{tx: tx, schema: p.schema, answer: patience{answer: p.answer.answer, watch: p.watch(conn.PID())}}); err != nil {
		p.answer.note(err)
		p.endGivenUp(ctx, conn, err)
		return err
	}
	ctx, end := p.answer.bound(ctx)
	defer end()
	if err := tx.Commit(ctx); err != nil {
		return &CommitError{Err: err}
	}
	return nil
}

// begin opens a transaction. A process that is frozen in one would keep its locks from everybody, in a flip from readers too: the
// database ends it where it can, and others where it cannot.
func (p *Pool) begin(ctx context.Context, sql string) (pgx.Tx, error) {
	ctx, end := p.answer.bound(ctx)
	defer end()
	marked := p.owner != "" && sql == readCommitted // a mark would take the snapshot of the others
	if p.idle > 0 {
		sql += fmt.Sprintf("; SET LOCAL idle_in_transaction_session_timeout = %d", p.idle.Milliseconds())
	}
	if marked {
		sql += "; " + markSQL(p.owner)
	}
	return p.pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: sql})
}
