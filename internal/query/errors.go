package query

import (
	"errors"

	"github.com/duckdb/duckdb-go/v2"
)

// ExecError is an error that the engine raised while a statement ran, over the data: some record in the input causes it.
type ExecError struct{ Err error }

func (e *ExecError) Error() string { return e.Err.Error() }

// Unwrap gives the engine's error.
func (e *ExecError) Unwrap() error { return e.Err }

// ResourceError is an error of the engine that no record is to blame for: out of memory, a full disk, an engine that broke.
// The same statement may succeed later or elsewhere.
type ResourceError struct{ Err error }

func (e *ResourceError) Error() string { return e.Err.Error() }

// Unwrap gives the engine's error.
func (e *ResourceError) Unwrap() error { return e.Err }

// errClosed is what a closed session answers.
var errClosed = errors.New("the query session is closed")

// classify turns an error of the driver into ExecError or ResourceError and says whether the engine must be replaced.
func classify(err error) (_ error, broken bool) {
	var de *duckdb.Error
	if !errors.As(err, &de) {
		return &ResourceError{Err: err}, true
	}
	switch de.Type {
	case duckdb.ErrorTypeFatal, duckdb.ErrorTypeInternal, duckdb.ErrorTypeConnection, duckdb.ErrorTypeNullPointer:
		return &ResourceError{Err: err}, true
	case duckdb.ErrorTypeOutOfMemory, duckdb.ErrorTypeIO, duckdb.ErrorTypeInterrupt, duckdb.ErrorTypeTransaction:
		return &ResourceError{Err: err}, false
	default:
		return &ExecError{Err: err}, false
	}
}
