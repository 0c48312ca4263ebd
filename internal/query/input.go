package query

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// SourceRelation is the relation that a query reads.
const SourceRelation = "source"

// rowColumn is the only column of an input reader, a STRUCT. A reader with the fields as columns would be misread:
// DuckDB prunes unused columns from a scan, and the driver's stream ignores that.
const rowColumn = "r"

// input is the reader that DuckDB pulls from. It keeps the reader's first error, because DuckDB passes on only the
// text. The goroutine that runs the statement owns it: with one thread, DuckDB calls it from there; with more threads,
// DuckDB calls it from one at a time.
type input struct {
	ctx    context.Context
	reader array.RecordReader
	err    error
}

var _ array.RecordReader = (*input)(nil)

// Retain and Release do nothing: the caller of Run owns the reader.
func (in *input) Retain()  {}
func (in *input) Release() {}

func (in *input) Schema() *arrow.Schema { return in.reader.Schema() }

func (in *input) Next() (more bool) {
	defer func() {
		if p := recover(); p != nil {
			in.err = fmt.Errorf("read the input: panic: %v", p)
			more = false
		}
	}()
	if in.err != nil {
		return false
	}
	if in.ctx.Err() != nil {
		in.err = context.Cause(in.ctx)
		return false
	}
	if in.reader.Next() {
		return true
	}
	in.err = in.reader.Err()
	return false
}

func (in *input) RecordBatch() arrow.RecordBatch { return in.reader.RecordBatch() }

// Record is the deprecated name of RecordBatch, which the interface requires.
func (in *input) Record() arrow.RecordBatch { return in.reader.RecordBatch() }

func (in *input) Err() error { return in.err }

// register makes in readable as relation source until the returned function is called.
func (s *Session) register(ctx context.Context, in *input) (drop func() error, err error) {
	fields, err := rowFields(in.Schema())
	if err != nil {
		return nil, yieldError{err}
	}
	s.views++
	name := fmt.Sprintf("_kappactl_input_%d", s.views)
	release, err := s.arrow.RegisterView(in, name)
	if err != nil {
		return nil, err
	}
	items := make([]string, len(fields))
	for i, f := range fields {
		items[i] = fmt.Sprintf("%s.%s AS %s", rowColumn, ident(f), ident(f))
	}
	drop = func() error {
		defer release()
		ctx := context.WithoutCancel(ctx)
		return errors.Join(
			s.exec(ctx, "DROP VIEW IF EXISTS temp."+SourceRelation),
			s.exec(ctx, "DROP VIEW IF EXISTS "+ident(name)))
	}
	view := fmt.Sprintf("CREATE OR REPLACE TEMP VIEW %s AS SELECT %s FROM %s", SourceRelation, strings.Join(items, ", "),
		ident(name))
	if err := s.exec(ctx, view); err != nil {
		return nil, errors.Join(err, drop())
	}
	return drop, nil
}

// rowFields returns the field names of a reader's STRUCT column.
func rowFields(schema *arrow.Schema) ([]string, error) {
	if schema.NumFields() != 1 || schema.Field(0).Name != rowColumn {
		return nil, fmt.Errorf("the input of a query has columns %v: want one STRUCT column %q", schema.Fields(), rowColumn)
	}
	row, ok := schema.Field(0).Type.(*arrow.StructType)
	if !ok || row.NumFields() == 0 {
		return nil, fmt.Errorf("the input column %q has type %s: want a STRUCT with at least one field", rowColumn,
			schema.Field(0).Type)
	}
	names := make([]string, row.NumFields())
	for i, f := range row.Fields() {
		names[i] = f.Name
	}
	return names, nil
}
