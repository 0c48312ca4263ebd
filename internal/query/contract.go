package query

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/kappactl/kappactl/internal/job"
)

// Dialect is raised only when the golden files of PARTIAL change.
const Dialect = 1

// Engine is the name and version of the SQL engine: "duckdb 1.5.6".
func Engine() string { panic("contract") }

// Compiled is a job's query, taken apart.
type Compiled struct {
	Layout job.Layout
	Fields []string // declared and meta columns that PARTIAL reads, in the order of the Arrow struct (format.New wants them)
	// Partial is the DuckDB SELECT from relation source to keys and states (typed; golden files keep it).
	Partial string
	// Oracle is the user's query, rewritten only where DuckDB alone would be ambiguous (order of first/last/arg_*). Its columns are the query's select list.
	Oracle string
}

// Compile takes the query of spec apart, or returns job.Problems naming place, cause and cure. It needs no server.
func Compile(ctx context.Context, spec *job.Spec) (*Compiled, error) { panic("contract") }

// Land is PARTIAL as it is run by speedlayer: columns in the order of Layout.StagedColumns (lane, keys, states), each cast to text in PostgreSQL's
// input syntax (bytea as \x…, timestamps with zone, BC dates, arrays and jsonb right), so that text[] parameters and COPY text take them as they are.
func (c *Compiled) Land(lanes int) string { panic("contract") }

// Config bounds a Session. Zero fields mean defaults.
type Config struct {
	Memory  int64  // bytes, default 256 MB
	Temp    string // spill folder; empty: no spilling
	Threads int    // default 1
}

// Session is one locked-down DuckDB (architecture §3) with one connection. One goroutine owns it. It is recycled inside after a fatal error.
type Session struct{}

func Open(ctx context.Context, c Config) (*Session, error) { panic("contract") }
func (s *Session) Close() error                            { panic("contract") }

// Run registers in as relation source (one STRUCT column r expanded to its fields) and runs sql over it once, streaming: in.Next() is called by the engine.
// yield gets the result batches; they are valid until it returns. in == nil: no source. An error of in (in.Err()) is returned as it is (errors.Is/As work),
// an error of the SQL as *ExecError.
func (s *Session) Run(ctx context.Context, sql string, in array.RecordReader, yield func(arrow.RecordBatch) error) error {
	panic("contract")
}

// ExecError is an error that the engine raised while a statement ran, over the data.
type ExecError struct{ Err error }

func (e *ExecError) Error() string { return e.Err.Error() }
func (e *ExecError) Unwrap() error { return e.Err }
