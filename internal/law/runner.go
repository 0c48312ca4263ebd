package law

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/query"
)

// Row is one row as texts; nil is NULL.
type Row []*string

// Rejected is a record that the decoder refused: it becomes a dead letter.
type Rejected struct {
	Record *kgo.Record
	format.Reject
}

// Runner runs a job's query over records at hand. One goroutine owns it.
type Runner struct {
	spec     *job.Spec
	compiled *query.Compiled
	session  *query.Session
	rejected int64  // records that the decoder has refused
	example  string // why the first was
}

// NewRunner starts an engine. Close ends it.
func NewRunner(ctx context.Context, spec *job.Spec, c *query.Compiled) (*Runner, error) {
	session, err := query.Open(ctx, query.Config{})
	if err != nil {
		return nil, err
	}
	return &Runner{spec: spec, compiled: c, session: session}, nil
}

// Close ends the engine.
func (r *Runner) Close() error { return r.session.Close() }

// Session is the engine.
func (r *Runner) Session() *query.Session { return r.session }

// Reads says that the query reads a field: a declared column, or a meta column.
func (r *Runner) Reads(field string) bool { return slices.Contains(r.compiled.Fields, field) }

// Answer runs the query once over the records: its own columns as texts in PostgreSQL's input syntax.
func (r *Runner) Answer(ctx context.Context, records []*kgo.Record) ([]Row, error) {
	return r.texts(ctx, r.compiled.Answer(), r.compiled.Fields, records)
}

// audit is Answer; of appended rows, with their place in the log in front.
func (r *Runner) audit(ctx context.Context, records []*kgo.Record) ([]Row, error) {
	return r.texts(ctx, r.compiled.AuditAnswer(), r.compiled.FieldsFor(1), records)
}

// Judge tells the records that can be processed from those that become dead letters, in decoding or because no table
// takes their key: one that is NULL or too long.
func (r *Runner) Judge(ctx context.Context, records []*kgo.Record) (good []*kgo.Record, bad []Rejected, err error) {
	decoder, err := format.New(r.spec.Source, r.compiled.Fields)
	if err != nil {
		return nil, nil, err
	}
	defer decoder.Close()
	for _, rec := range records {
		if reject := decoder.Append(rec); reject != nil {
			bad = append(bad, Rejected{rec, *reject})
		} else {
			good = append(good, rec)
		}
	}
	passed, failed, err := r.sift(ctx, good)
	return passed, append(bad, failed...), err
}

// sift halves records until those whose key is refused are found.
func (r *Runner) sift(ctx context.Context, records []*kgo.Record) (good []*kgo.Record, bad []Rejected, err error) {
	_, err = r.texts(ctx, r.compiled.Land(1), r.compiled.FieldsFor(1), records)
	var exec *query.ExecError
	reason, detail, guarded := query.Guarded(err)
	switch {
	case err != nil && !errors.As(err, &exec):
		return nil, nil, err
	case !guarded: // an error of the query's own is for its author to see
		return records, nil, nil
	case len(records) == 1:
		return nil, []Rejected{{records[0], format.Reject{Reason: reason, Detail: detail}}}, nil
	}
	half := len(records) / 2
	for _, part := range [][]*kgo.Record{records[:half], records[half:]} {
		g, b, err := r.sift(ctx, part)
		if err != nil {
			return nil, nil, err
		}
		good, bad = append(good, g...), append(bad, b...)
	}
	return good, bad, nil
}

// batchRecords is how many records the engine gets at once.
const batchRecords = 10_000

// texts runs a statement of text columns over records.
func (r *Runner) texts(ctx context.Context, sql string, fields []string, records []*kgo.Record) (out []Row, err error) {
	in, err := r.reader(fields, records)
	if err != nil {
		return nil, err
	}
	defer in.Release()
	err = r.session.Run(ctx, sql, in, func(b arrow.RecordBatch) error {
		columns := make([]array.StringLike, b.NumCols())
		for i, c := range b.Columns() {
			s, ok := c.(array.StringLike)
			if !ok {
				return fmt.Errorf("column %d came as %s, not as text", i, c.DataType())
			}
			columns[i] = s
		}
		for row := range int(b.NumRows()) {
			values := make(Row, len(columns))
			for i, c := range columns {
				if !c.IsNull(row) {
					text := strings.Clone(c.Value(row)) // the engine owns the bytes
					values[i] = &text
				}
			}
			out = append(out, values)
		}
		return nil
	})
	return out, err
}

// reader decodes records into batches; those that are refused are left out.
func (r *Runner) reader(fields []string, records []*kgo.Record) (array.RecordReader, error) {
	decoder, err := format.New(r.spec.Source, fields)
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	var batches []arrow.RecordBatch
	take := func() {
		if decoder.Len() > 0 {
			batches = append(batches, decoder.Take())
		}
	}
	for _, rec := range records {
		if reject := decoder.Append(rec); reject != nil { // a dead letter counts nowhere
			r.rejected++
			r.example = or(r.example, reject.Error())
		}
		if decoder.Len() >= batchRecords {
			take()
		}
	}
	take()
	in, err := array.NewRecordReader(decoder.Schema(), batches)
	for _, b := range batches {
		b.Release()
	}
	if err != nil {
		return nil, errors.Join(errors.New("join decoded records"), err)
	}
	return in, nil
}

// survivors are the records over which the query does not fail. tries is how often it may still run: a part over which it fails then is
// left out as a whole, and is not among those that failed.
func (r *Runner) survivors(ctx context.Context, records []*kgo.Record, tries *int) (good []*kgo.Record, failed int64, why string, err error) {
	*tries--
	_, err = r.texts(ctx, r.compiled.Land(1), r.compiled.FieldsFor(1), records)
	var exec *query.ExecError
	switch {
	case err == nil:
		return records, 0, "", nil
	case !errors.As(err, &exec):
		return nil, 0, "", err
	case len(records) == 1:
		return nil, 1, plainly(exec), nil
	case *tries <= 0:
		return nil, 0, "", nil
	}
	half := len(records) / 2
	for _, part := range [][]*kgo.Record{records[:half], records[half:]} {
		g, n, first, err := r.survivors(ctx, part, tries)
		if err != nil {
			return nil, 0, "", err
		}
		good, failed, why = append(good, g...), failed+n, or(why, first)
	}
	return good, failed, why, nil
}

// plainly is an error of the engine in one line, without its copy of the query.
func plainly(err error) string {
	if reason, detail, guarded := query.Guarded(err); guarded {
		return reason + ": " + detail
	}
	cause, _, _ := strings.Cut(strings.Join(strings.Fields(err.Error()), " "), " LINE 1:")
	return cause
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Try runs PARTIAL over one record and drops its rows: what an agent does with it. A *query.ExecError says that it fails.
func (r *Runner) Try(ctx context.Context, rec *kgo.Record) error {
	_, err := r.texts(ctx, r.compiled.Land(1), r.compiled.FieldsFor(1), []*kgo.Record{rec})
	return err
}
