package pg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config configures the connection to PostgreSQL. Zero fields mean the defaults set in Open.
type Config struct {
	DSN         string        // URL or key=value; PG* variables supply missing parts
	Password    PasswordFunc  // nil: from DSN, PGPASSWORD or passfile
	Schema      string        // control schema, default kappactl
	Application string        // application_name, default kappactl
	MaxConns    int32         // default 8
	Connect     time.Duration // connect timeout, default 5 s
	Idle        time.Duration // idle time between two statements after which the server ends a transaction; 0: no limit
	Answer      time.Duration // time limit of statements without a context deadline that are not Long, default 30 s
	Log         *slog.Logger  // of the statements, without their values; nil: none
	Mark        string        // owner of the ReadCommitted transactions, for EndStuck; empty: unmarked
}

// PasswordFunc returns the password for a new connection; "" means the one in the connection string. It is called for
// each new connection, so that a rotated password or a new token takes effect without a restart.
type PasswordFunc func(context.Context) (string, error)

// Password returns a PasswordFunc for a fixed password; nil if it is empty.
func Password(fixed string) PasswordFunc {
	if fixed == "" {
		return nil
	}
	return func(context.Context) (string, error) { return fixed, nil }
}

// Pool is a pool of connections to one database.
type Pool struct {
	pool   *pgxpool.Pool
	lines  *sockets
	schema schema
	answer patience
	idle   time.Duration
	owner  string
	direct bool // no pooler in between: connections have the ids of their backends
	place  *pgx.ConnConfig
}

// Open opens a pool and verifies that one connection works. Errors contain no password.
func Open(ctx context.Context, c Config) (*Pool, error) {
	cfg, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, &ConnectError{Err: badDSN(err)}
	}
	if c.Password != nil {
		cfg.BeforeConnect = c.Password.set
	}
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = cmp.Or(c.Application, "kappactl")
	}
	maps.Copy(cfg.ConnConfig.RuntimeParams, plainSessions())
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = cmp.Or(c.Connect, 5*time.Second)
	}
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	if c.Log != nil {
		cfg.ConnConfig.Tracer = tracer{c.Log}
	}
	lines := &sockets{}
	cfg.ConnConfig.DialFunc = lines.dial
	cfg.MaxConns = cmp.Or(c.MaxConns, 8)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, newConnectError(cfg.ConnConfig, err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, newConnectError(cfg.ConnConfig, err)
	}
	direct := c.Mark != "" && reachesBackends(ctx, pool)
	// After a failover, old connections may still lead to the former primary; new connections find the current one.
	return &Pool{
		pool: pool, lines: lines, schema: schema(cmp.Or(c.Schema, DefaultSchema)), idle: c.Idle, owner: c.Mark,
		direct: direct, place: cfg.ConnConfig,
		answer: patience{answer: cmp.Or(c.Answer, defaultAnswer), turned: pool.Reset},
	}, nil
}

// plainSessions returns the settings that every session relies on, whatever the role or the database has set: values
// are passed as text, in UTF-8, and times in the style that pgx reads. Poolers preserve exactly these settings per
// client.
func plainSessions() map[string]string {
	return map[string]string{"datestyle": "ISO, MDY", "client_encoding": "UTF8", "standard_conforming_strings": "on"}
}

// Close closes all connections. A connection whose statement was cancelled may take 15 s to close gracefully,
// especially with TLS; its socket is closed after closeWithin instead.
func (p *Pool) Close() {
	timer := time.AfterFunc(closeWithin, p.lines.close)
	defer timer.Stop()
	p.pool.Close()
}

// Place returns where the database is: the host, or the folder of a socket, and the database's name.
func (p *Pool) Place() (host string, port uint16, database string) {
	if database = p.place.Database; database == "" {
		database = p.place.User
	}
	return p.place.Host, p.place.Port, database
}

// Schema returns the control schema's name.
func (p *Pool) Schema() string { return string(p.schema) }

// Exec runs one or more statements and returns the tag of the last one.
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

// execLong runs a Long statement on a connection whose backend is polled.
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

// QueryRow runs a query that returns one row.
func (p *Pool) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return p.answer.queryRow(ctx, p.pool, p.schema.sql(sql), args)
}

// The statements that begin transactions.
const (
	readCommitted  = "begin isolation level read committed"
	repeatableRead = "begin isolation level repeatable read"
	readOnly       = "begin isolation level repeatable read read only"
)

// ReadCommitted runs f in a READ COMMITTED transaction and commits if f returns nil.
func (p *Pool) ReadCommitted(ctx context.Context, f func(*Tx) error) error {
	return p.in(ctx, readCommitted, f)
}

// ErrDryRun is the result of a transaction that was rolled back because it was only to be tried: nothing prevented it.
var ErrDryRun = errors.New("dry run")

// Try is ReadCommitted, unless dry: what f did is then rolled back, and the result is ErrDryRun when f returns nil.
func (p *Pool) Try(ctx context.Context, dry bool, f func(*Tx) error) error {
	return p.ReadCommitted(ctx, func(tx *Tx) error {
		if err := f(tx); err != nil || !dry {
			return err
		}
		return ErrDryRun
	})
}

// Snapshot runs f in a REPEATABLE READ transaction, whose statements all use the snapshot of its first one.
func (p *Pool) Snapshot(ctx context.Context, f func(*Tx) error) error {
	return p.in(ctx, repeatableRead, f)
}

// ReadOnly runs f in a read-only REPEATABLE READ transaction.
func (p *Pool) ReadOnly(ctx context.Context, f func(*Tx) error) error {
	return p.in(ctx, readOnly, f)
}

func (p *Pool) in(ctx context.Context, begin string, f func(*Tx) error) error {
	tx, err := p.begin(ctx, begin)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		// A no-op after Commit; a cancelled ctx must not leave the connection in a transaction.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = tx.Rollback(end)
	}()
	conn := tx.Conn().PgConn()
	if err := f(&Tx{
		tx: tx, schema: p.schema,
		answer: patience{answer: p.answer.answer, watch: p.watch(conn.PID())},
	}); err != nil {
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

// begin opens a transaction. A process that freezes inside one would keep its locks, during a flip even against
// readers. The database ends the transaction where it can (Config.Idle), and other agents where it cannot (EndStuck).
func (p *Pool) begin(ctx context.Context, sql string) (pgx.Tx, error) {
	ctx, end := p.answer.bound(ctx)
	defer end()
	marked := p.owner != "" && sql == readCommitted // in the other kinds a mark would take the snapshot too early
	if p.idle > 0 {
		sql += fmt.Sprintf("; SET LOCAL idle_in_transaction_session_timeout = %d", p.idle.Milliseconds())
	}
	if marked {
		sql += "; " + markSQL(p.owner)
	}
	return p.pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: sql})
}
