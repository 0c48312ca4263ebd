package query

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/duckdb/duckdb-go/v2"
	"github.com/duckdb/duckdb-go/v2/mapping"
)

// Engine returns the name and version of the SQL engine: "duckdb 1.5.6".
func Engine() string { return "duckdb " + strings.TrimPrefix(mapping.LibraryVersion(), "v") }

// Session is one locked-down in-memory DuckDB with one connection. One goroutine owns it. After an error that may have
// damaged the engine, the next call starts a new one.
type Session struct {
	config Config
	spill  string // own folder inside config.Temp, or empty
	closed bool

	connector *duckdb.Connector // nil: not started
	conn      driver.Conn
	arrow     *duckdb.Arrow
	views     int // counts input views, for their names
}

// Open starts an engine.
func Open(ctx context.Context, c Config) (*Session, error) {
	s := &Session{config: c.withDefaults()}
	if c.Temp != "" {
		dir, err := os.MkdirTemp(c.Temp, "duckdb-*")
		if err != nil {
			return nil, fmt.Errorf("make the spill folder: %w", err)
		}
		s.spill = dir
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close stops the engine and removes its spill files.
func (s *Session) Close() error {
	s.closed = true
	err := s.stop()
	if s.spill != "" {
		err = errors.Join(err, os.RemoveAll(s.spill))
	}
	return err
}

// Bound changes the session's limits of memory and spill: Memory and TempLimit of c; it ignores the other fields. The
// settings of a running engine are locked, so the next statement starts a new engine.
func (s *Session) Bound(c Config) error {
	c = c.withDefaults()
	if c.Memory == s.config.Memory && c.TempLimit == s.config.TempLimit {
		return nil
	}
	s.config.Memory, s.config.TempLimit = c.Memory, c.TempLimit
	return s.stop()
}

func (s *Session) start(ctx context.Context) error {
	if s.closed {
		return errClosed
	}
	if s.connector != nil {
		return nil
	}
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		return fmt.Errorf("start the query engine: %w", err)
	}
	s.connector = connector
	if s.conn, err = connector.Connect(ctx); err != nil {
		return errors.Join(fmt.Errorf("connect to the query engine: %w", err), s.stop())
	}
	if s.arrow, err = duckdb.NewArrowFromConn(s.conn); err != nil {
		return errors.Join(fmt.Errorf("connect to the query engine: %w", err), s.stop())
	}
	statements := append(macroStatements(), s.config.settings(s.spill)...)
	if !s.config.plain {
		statements = append(limits(), statements...)
	}
	for _, sql := range statements {
		if err := s.exec(ctx, sql); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", sql, err), s.stop())
		}
	}
	return nil
}

func (s *Session) stop() error {
	var err error
	if s.conn != nil {
		err = s.conn.Close()
	}
	if s.connector != nil {
		err = errors.Join(err, s.connector.Close())
	}
	s.connector, s.conn, s.arrow = nil, nil, nil
	return err
}

// Run registers in as relation source (one STRUCT column r expanded to its fields) and runs sql over it once,
// streaming: DuckDB calls in.Next(). yield receives the result batches, which are valid until it returns. If in is nil
// there is no source. Run does not release in.
//
// Errors of in (in.Err()) and of yield are returned unchanged. A cancelled ctx returns its cause. An error of the SQL
// over the data is an *ExecError, an error that no record causes a *ResourceError.
func (s *Session) Run(ctx context.Context, sql string, in array.RecordReader,
	yield func(arrow.RecordBatch) error,
) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	if in == nil {
		return s.finish(ctx, nil, s.query(ctx, sql, yield))
	}
	source := &input{ctx: ctx, reader: in}
	drop, err := s.register(ctx, source)
	if err != nil {
		return s.finish(ctx, source, err)
	}
	err = s.query(ctx, sql, yield)
	dropErr := drop()
	if dropErr != nil {
		return errors.Join(s.finish(ctx, source, err), dropErr, s.stop())
	}
	return s.finish(ctx, source, err)
}

// yieldError passes an error of the caller's yield through classify unchanged.
type yieldError struct{ error }

// finish returns the error of whoever caused err: ctx, the input, yield or DuckDB.
func (s *Session) finish(ctx context.Context, source *input, err error) error {
	if err == nil && source != nil {
		return source.err // DuckDB stopped reading early because the input had failed
	}
	if err == nil {
		return nil
	}
	var ye yieldError
	if errors.As(err, &ye) {
		return ye.error
	}
	classified, broken := classify(err)
	switch {
	case source != nil && source.err != nil:
		classified = source.err
	case ctx.Err() != nil:
		classified = context.Cause(ctx)
	}
	if broken && ctx.Err() == nil && (source == nil || source.err == nil) {
		return errors.Join(classified, s.stop())
	}
	return classified
}

// query runs one statement and passes its batches to yield.
func (s *Session) query(ctx context.Context, sql string, yield func(arrow.RecordBatch) error, args ...any) error {
	rows, err := s.arrow.QueryContext(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Release()
	for rows.Next() {
		if err := yield(rows.RecordBatch()); err != nil {
			return yieldError{err}
		}
	}
	return rows.Err()
}

func (s *Session) exec(ctx context.Context, sql string) error {
	return s.query(ctx, sql, func(arrow.RecordBatch) error { return nil })
}

// texts runs a statement whose columns are all VARCHAR and returns its rows; NULL becomes "".
func (s *Session) texts(ctx context.Context, sql string, args ...any) ([][]string, error) {
	var out [][]string
	err := s.query(ctx, sql, func(b arrow.RecordBatch) error {
		for row := range int(b.NumRows()) {
			line := make([]string, b.NumCols())
			for col := range line {
				if b.Column(col).IsValid(row) {
					line[col] = strings.Clone(b.Column(col).ValueStr(row)) // DuckDB owns the bytes
				}
			}
			out = append(out, line)
		}
		return nil
	}, args...)
	return out, err
}
