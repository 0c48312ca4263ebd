package devstack

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/duckdb/duckdb-go/v2"
)

// openEngine opens a DuckDB that can read files, which the sessions of internal/query cannot.
func openEngine() (*sql.DB, error) {
	connector, err := duckdb.NewConnector("?memory_limit=512MB&threads=2&preserve_insertion_order=true"+
		"&autoinstall_known_extensions=false&autoload_known_extensions=false", nil)
	if err != nil {
		return nil, fmt.Errorf("start the file reader: %w", err)
	}
	return sql.OpenDB(connector), nil
}

// shape is the name and type of a column.
type shape struct {
	name string
	info duckdb.TypeInfo
}

// shapes returns the columns of a relation.
func shapes(ctx context.Context, db *sql.DB, relation string) ([]shape, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	var out []shape
	err = conn.Raw(func(c any) error {
		stmt, err := c.(driver.ConnPrepareContext).PrepareContext(ctx, "SELECT * FROM "+relation)
		if err != nil {
			return err
		}
		out, err = shapesOf(stmt.(*duckdb.Stmt))
		return errors.Join(err, stmt.Close())
	})
	return out, errors.Join(err, conn.Close())
}

func shapesOf(stmt *duckdb.Stmt) ([]shape, error) {
	n, err := stmt.ColumnCount()
	if err != nil {
		return nil, err
	}
	out := make([]shape, n)
	for i := range out {
		if out[i].name, err = stmt.ColumnName(i); err != nil {
			return nil, err
		}
		if out[i].info, err = stmt.ColumnTypeInfo(i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// lines is a running query whose rows are lines of text, in the order of the file. The rows come through a pipe,
// because the driver keeps whole results in memory.
type lines struct {
	pipe   *os.File
	reader *bufio.Reader
	cancel context.CancelFunc
	failed chan error // receives the query's error, or nil, before the pipe ends
}

// start runs a query with one column of text without line ends.
func start(ctx context.Context, db *sql.DB, query string) (*lines, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("create a pipe for the file reader: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &lines{pipe: r, reader: bufio.NewReaderSize(r, 1<<20), cancel: cancel, failed: make(chan error, 1)}
	statement := fmt.Sprintf("COPY (%s) TO '/dev/fd/%d' "+
		"(FORMAT csv, HEADER false, DELIMITER '\t', QUOTE '', ESCAPE '', USE_TMP_FILE false)", query, w.Fd())
	go func() {
		_, err := db.ExecContext(ctx, statement)
		l.failed <- err
		_ = w.Close() // w buffers nothing
	}()
	return l, nil
}

// next returns the next line, io.EOF after the last one, or the error of the query.
func (l *lines) next() ([]byte, error) {
	line, err := l.reader.ReadBytes('\n')
	switch {
	case err == nil:
		return line[:len(line)-1], nil
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	err = <-l.failed
	l.failed <- err // for the next call
	if err != nil {
		return nil, err
	}
	return nil, io.EOF
}

// close ends the query and waits for its end.
func (l *lines) close() error {
	l.cancel()
	_, err := io.Copy(io.Discard, l.reader) // the query may be waiting for the pipe
	return errors.Join(err, l.pipe.Close())
}
