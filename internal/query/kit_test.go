package query

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/leaktest"
	"github.com/kappactl/kappactl/internal/pgtest"
)

func TestMain(m *testing.M) {
	if err := os.Setenv(trapVariable, trapSecret); err != nil { // before any engine is there; tests run beside each other
		panic(err)
	}
	leaktest.Main(func() int { return pgtest.Run(m) })
}

// open gives a session that the test closes.
func open(t testing.TB, c Config) *Session {
	t.Helper()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// stream is a reader of batches that a function makes on demand: nil ends it.
type stream struct {
	schema  *arrow.Schema
	next    func() (arrow.RecordBatch, error)
	current arrow.RecordBatch
	err     error
	reads   int
}

func (s *stream) Retain()               {}
func (s *stream) Release()              { s.drop() }
func (s *stream) Schema() *arrow.Schema { return s.schema }
func (s *stream) Err() error            { return s.err }

func (s *stream) Next() bool {
	s.drop()
	s.reads++
	s.current, s.err = s.next()
	return s.current != nil && s.err == nil
}

func (s *stream) drop() {
	if s.current != nil {
		s.current.Release()
		s.current = nil
	}
}

func (s *stream) RecordBatch() arrow.RecordBatch { return s.current }
func (s *stream) Record() arrow.RecordBatch      { return s.current }

var _ array.RecordReader = (*stream)(nil)

func rowSchema(fields ...arrow.Field) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: rowColumn, Type: arrow.StructOf(fields...)}}, nil)
}

// numbers is a stream of n batches of size rows with the columns a (0, 1, 2, …) and b (text of a modulo groups).
func numbers(t testing.TB, alloc memory.Allocator, n, size, groups int) *stream {
	t.Helper()
	s := &stream{schema: rowSchema(
		arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true})}
	made := 0
	s.next = func() (arrow.RecordBatch, error) {
		if made == n {
			return nil, nil
		}
		b := array.NewRecordBuilder(alloc, s.schema)
		defer b.Release()
		row := b.Field(0).(*array.StructBuilder)
		for i := range size {
			v := made*size + i
			row.Append(true)
			row.FieldBuilder(0).(*array.Int64Builder).Append(int64(v))
			row.FieldBuilder(1).(*array.StringBuilder).Append("group " + strings.Repeat("x", 40) + time.Duration(v%groups).String())
		}
		made++
		return b.NewRecordBatch(), nil
	}
	return s
}

// rowsOf runs sql and returns every row as texts; NULL reads as null.
func rowsOf(ctx context.Context, s *Session, sql string, in array.RecordReader) ([][]string, error) {
	var out [][]string
	err := s.Run(ctx, sql, in, func(b arrow.RecordBatch) error {
		for r := range int(b.NumRows()) {
			line := make([]string, b.NumCols())
			for c := range line {
				line[c] = null
				if b.Column(c).IsValid(r) {
					line[c] = strings.Clone(b.Column(c).ValueStr(r))
				}
			}
			out = append(out, line)
		}
		return nil
	})
	return out, err
}

func mustRows(t testing.TB, s *Session, sql string, in array.RecordReader) [][]string {
	t.Helper()
	rows, err := rowsOf(t.Context(), s, sql, in)
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return rows
}

// parseJob reads a job file and fails the test when it is wrong.
func parseJob(t testing.TB, file, text string) *job.Spec {
	t.Helper()
	spec, err := job.Parse(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// problemsOf compiles and returns the problems; it fails the test when there are none.
func problemsOf(t testing.TB, spec *job.Spec) job.Problems {
	t.Helper()
	_, err := Compile(t.Context(), spec)
	var problems job.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("want problems, got %v for\n%s", err, spec.Query)
	}
	return problems
}

// null is how a NULL reads in the rows of a test; no value of a test is the same.
const null = "\x00null"
