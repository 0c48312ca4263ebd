package query

import (
	"errors"
	"strings"

	"github.com/duckdb/duckdb-go/v2"
)

// ExecError is an error that DuckDB raised over the data while a statement ran: some input record causes it.
type ExecError struct{ Err error }

// Error returns DuckDB's message on one line, without the statement and without a stack trace.
func (e *ExecError) Error() string {
	text := e.Err.Error()
	for _, mark := range []string{"\n\nLINE ", "\nLINE ", "\n\nStack Trace", "\nStack Trace"} {
		text, _, _ = strings.Cut(text, mark)
	}
	return strings.Join(strings.Fields(text), " ")
}

// Unwrap returns DuckDB's error.
func (e *ExecError) Unwrap() error { return e.Err }

// ResourceError is an error of DuckDB that no record causes: out of memory, a full disk, an internal failure. The same
// statement may succeed later or elsewhere.
type ResourceError struct {
	Err    error
	Costly bool // the statement exceeded its limit of memory, rows or time
}

func (e *ResourceError) Error() string { return e.Err.Error() }

// Unwrap returns DuckDB's error.
func (e *ResourceError) Unwrap() error { return e.Err }

// errClosed is returned by a closed session.
var errClosed = errors.New("the query session is closed")

// classify turns an error of the driver into an ExecError or ResourceError and reports whether the engine must be
// replaced.
func classify(err error) (_ error, broken bool) {
	var de *duckdb.Error
	if !errors.As(err, &de) {
		return &ResourceError{Err: err}, true
	}
	switch de.Type {
	case duckdb.ErrorTypeInternal: // an assertion of DuckDB that fails over the values of some record
		return &ExecError{Err: err}, true
	case duckdb.ErrorTypeFatal, duckdb.ErrorTypeConnection, duckdb.ErrorTypeNullPointer:
		return &ResourceError{Err: err}, true
	case duckdb.ErrorTypeOutOfMemory:
		return &ResourceError{Err: err, Costly: true}, false
	case duckdb.ErrorTypeIO, duckdb.ErrorTypeInterrupt, duckdb.ErrorTypeTransaction:
		return &ResourceError{Err: err}, false
	default:
		return &ExecError{Err: err}, false
	}
}
