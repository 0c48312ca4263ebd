package devstack

import (
	"errors"
	"fmt"
	"io"

	bindings "github.com/duckdb/duckdb-go-bindings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// engine is a DuckDB of our own that reads files. The driver's session of internal/query must not, and the driver keeps
// whole results in memory; the C interface under it streams. One goroutine owns it.
type engine struct {
	db   bindings.Database
	conn bindings.Connection
}

func openEngine() (*engine, error) {
	e := &engine{}
	var config bindings.Config
	if bindings.CreateConfig(&config) == bindings.StateError {
		return nil, errors.New("start the file reader: no configuration")
	}
	defer bindings.DestroyConfig(&config)
	for name, value := range map[string]string{
		"memory_limit": "512MB", "threads": "2", "preserve_insertion_order": "true",
		"autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
	} {
		if bindings.SetConfig(config, name, value) == bindings.StateError {
			return nil, fmt.Errorf("start the file reader: setting %s=%s", name, value)
		}
	}
	var text string
	if bindings.OpenExt(":memory:", &e.db, config, &text) == bindings.StateError {
		return nil, fmt.Errorf("start the file reader: %s", text)
	}
	if bindings.Connect(e.db, &e.conn) == bindings.StateError {
		bindings.Close(&e.db)
		return nil, errors.New("connect to the file reader")
	}
	return e, nil
}

func (e *engine) close() {
	bindings.Disconnect(&e.conn)
	bindings.Close(&e.db)
}

// stream is a running query. close releases it; before that of its engine.
type stream struct {
	stmt   bindings.PreparedStatement
	result bindings.Result
	opts   bindings.ArrowOptions
	schema *arrow.Schema
}

// query starts a statement whose rows come in the order of the file and are not kept.
func (e *engine) query(sql string) (*stream, error) {
	s := &stream{}
	if bindings.Prepare(e.conn, sql, &s.stmt) == bindings.StateError {
		err := errors.New(bindings.PrepareError(s.stmt))
		bindings.DestroyPrepare(&s.stmt)
		return nil, err
	}
	if bindings.ExecutePreparedStreaming(s.stmt, &s.result) == bindings.StateError {
		err := errors.New(bindings.ResultError(&s.result))
		bindings.DestroyResult(&s.result)
		bindings.DestroyPrepare(&s.stmt)
		return nil, err
	}
	s.opts = bindings.ResultGetArrowOptions(&s.result)
	if err := s.describe(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stream) describe() error {
	n := bindings.ColumnCount(&s.result)
	names, types := make([]string, n), make([]bindings.LogicalType, n)
	for i := range n {
		names[i], types[i] = bindings.ColumnName(&s.result, i), bindings.ColumnLogicalType(&s.result, i)
	}
	schema, failure := bindings.NewArrowSchema(s.opts, types, names)
	for i := range types {
		bindings.DestroyLogicalType(&types[i])
	}
	s.schema = schema
	return take(failure)
}

// next returns the next rows, to be released, or io.EOF.
func (s *stream) next() (arrow.RecordBatch, error) {
	chunk := bindings.FetchChunk(s.result)
	if chunk.Ptr == nil {
		if text := bindings.ResultError(&s.result); text != "" {
			return nil, errors.New(text)
		}
		return nil, io.EOF
	}
	defer bindings.DestroyDataChunk(&chunk)
	batch, failure := bindings.DataChunkToArrowArray(s.opts, s.schema, chunk)
	if err := take(failure); err != nil {
		return nil, err
	}
	return batch, nil
}

func (s *stream) close() {
	bindings.DestroyArrowOptions(&s.opts)
	bindings.DestroyResult(&s.result)
	bindings.DestroyPrepare(&s.stmt)
}

func take(failure bindings.ErrorData) error {
	defer bindings.DestroyErrorData(&failure)
	if failure.Ptr != nil && bindings.ErrorDataHasError(failure) {
		return errors.New(bindings.ErrorDataMessage(failure))
	}
	return nil
}

// texts runs a query of few rows of text columns and returns them by column.
func (e *engine) texts(sql string) ([][]string, error) {
	s, err := e.query(sql)
	if err != nil {
		return nil, err
	}
	defer s.close()
	out := make([][]string, s.schema.NumFields())
	for {
		batch, err := s.next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		for c := range out {
			column, ok := batch.Column(c).(array.StringLike)
			if !ok {
				batch.Release()
				return nil, fmt.Errorf("column %d of %q is not text", c+1, sql)
			}
			for r := range int(batch.NumRows()) {
				out[c] = append(out[c], string([]byte(column.Value(r)))) // the batch owns the bytes
			}
		}
		batch.Release()
	}
}
