package mergecheck

import (
	"cmp"
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
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
)

// Row holds the values of one row as text; nil is NULL.
type Row []*string

// Rejected is a record that would become a dead letter, with the reason.
type Rejected struct {
	Record *kgo.Record
	format.Reject
}

// Runner runs a job's query over records in memory. One goroutine owns it.
type Runner struct {
	spec     *job.Spec
	compiled *query.Compiled
	session  *query.Session
	rejected int64  // records that the decoder rejected
	example  string // why it rejected the first of them
}

// NewRunner opens a DuckDB session. Close closes it.
func NewRunner(ctx context.Context, spec *job.Spec, c *query.Compiled) (*Runner, error) {
	session, err := query.Open(ctx, query.Config{})
	if err != nil {
		return nil, err
	}
	return &Runner{spec: spec, compiled: c, session: session}, nil
}

// Close closes the session.
func (r *Runner) Close() error { return r.session.Close() }

// Session returns the session.
func (r *Runner) Session() *query.Session { return r.session }

// Reads reports whether the query reads a field: a declared column or a meta column.
func (r *Runner) Reads(field string) bool { return slices.Contains(r.compiled.Fields, field) }

// Answer runs the query once over the records and returns its own columns as text in PostgreSQL's input syntax.
func (r *Runner) Answer(ctx context.Context, records []*kgo.Record) ([]Row, error) {
	return r.texts(ctx, r.compiled.Answer(), r.compiled.Fields, records)
}

// audit returns the rows of Answer; appended rows begin with their place in the log.
func (r *Runner) audit(ctx context.Context, records []*kgo.Record) ([]Row, error) {
	return r.texts(ctx, r.compiled.AuditAnswer(), r.compiled.Fields, records)
}

// Judge separates the records that can be processed from those that would become dead letters: because they cannot be
// decoded, because the query fails over them, or because their key does not fit into an index.
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
	passed, failed, err := isolate(good, func(records []*kgo.Record) (*format.Reject, error) {
		_, err := r.texts(ctx, r.compiled.Land(), r.compiled.Fields, records)
		return r.blamed(err)
	})
	return passed, append(bad, failed...), err
}

// JudgeIn is Judge and also rejects records whose values PostgreSQL cannot store.
func (r *Runner) JudgeIn(ctx context.Context, d Deps, records []*kgo.Record) (good []*kgo.Record, bad []Rejected,
	err error,
) {
	passed, bad, err := r.Judge(ctx, records)
	if err != nil {
		return nil, nil, err
	}
	good, refused, err := isolate(passed, func(records []*kgo.Record) (*format.Reject, error) {
		rows, err := r.texts(ctx, r.compiled.Land(), r.compiled.Fields, records)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		_, err = d.Pool.Exec(ctx, query.Casts(r.compiled.Layout), columnsOf(rows)...)
		if code := pg.Code(err); len(code) == 5 && (code[:2] == "22" || code[:2] == "23" || code[:2] == "54") {
			return &format.Reject{Reason: query.QueryError, Detail: "PostgreSQL: " + pg.Message(err)}, nil
		}
		return nil, err
	})
	return good, append(bad, refused...), err
}

// blamed returns why one record becomes a dead letter if err was raised over that record alone. It returns errors that
// are not the record's fault.
func (r *Runner) blamed(err error) (*format.Reject, error) {
	var exec *query.ExecError
	if reason, detail, guarded := query.Guarded(err); guarded {
		return &format.Reject{Reason: reason, Detail: detail}, nil
	}
	if errors.As(err, &exec) {
		return &format.Reject{Reason: query.QueryError, Detail: r.compiled.Explain(exec)}, nil
	}
	return nil, err
}

// isolate isolates the records that probe rejects by halving the records repeatedly.
func isolate(records []*kgo.Record, probe func([]*kgo.Record) (*format.Reject, error)) (good []*kgo.Record,
	bad []Rejected, err error,
) {
	reject, err := probe(records)
	switch {
	case err != nil:
		return nil, nil, err
	case reject == nil:
		return records, nil, nil
	case len(records) == 1:
		return nil, []Rejected{{records[0], *reject}}, nil
	}
	half := len(records) / 2
	for _, part := range [][]*kgo.Record{records[:half], records[half:]} {
		g, b, err := isolate(part, probe)
		if err != nil {
			return nil, nil, err
		}
		good, bad = append(good, g...), append(bad, b...)
	}
	return good, bad, nil
}

// batchRecords is the number of records in one Arrow batch.
const batchRecords = 10_000

// texts runs a statement whose result columns are text over the records.
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
				return fmt.Errorf("column %d has type %s instead of text", i, c.DataType())
			}
			columns[i] = s
		}
		for row := range int(b.NumRows()) {
			values := make(Row, len(columns))
			for i, c := range columns {
				if !c.IsNull(row) {
					text := strings.Clone(c.Value(row)) // the session owns the bytes
					values[i] = &text
				}
			}
			out = append(out, values)
		}
		return nil
	})
	return out, err
}

// reader decodes records into batches and leaves out those that the decoder rejects.
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
		if reject := decoder.Append(rec); reject != nil { // dead letters are not part of any result
			r.rejected++
			r.example = cmp.Or(r.example, reject.Error())
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

// survivors returns the records that the query can process, the number of those over which it fails, and the first
// error. tries is how many more times the query may run; a part that fails after that is left out whole and not counted
// as failed.
func (r *Runner) survivors(ctx context.Context, records []*kgo.Record, tries *int) (good []*kgo.Record, failed int64,
	why string, err error,
) {
	*tries--
	_, err = r.texts(ctx, r.compiled.Land(), r.compiled.Fields, records)
	var exec *query.ExecError
	switch {
	case err == nil:
		return records, 0, "", nil
	case !errors.As(err, &exec):
		return nil, 0, "", err
	case len(records) == 1:
		return nil, 1, engineError(exec), nil
	case *tries <= 0:
		return nil, 0, "", nil
	}
	half := len(records) / 2
	for _, part := range [][]*kgo.Record{records[:half], records[half:]} {
		g, n, first, err := r.survivors(ctx, part, tries)
		if err != nil {
			return nil, 0, "", err
		}
		good, failed, why = append(good, g...), failed+n, cmp.Or(why, first)
	}
	return good, failed, why, nil
}

// engineError returns an error of DuckDB on one line, without the copy of the query that DuckDB adds.
func engineError(err error) string {
	if reason, detail, guarded := query.Guarded(err); guarded {
		return reason + ": " + detail
	}
	cause, _, _ := strings.Cut(strings.Join(strings.Fields(err.Error()), " "), " LINE 1:")
	return cause
}

// Try runs PARTIAL over one record and discards the rows. The error is a *query.ExecError if the query fails.
func (r *Runner) Try(ctx context.Context, rec *kgo.Record) error {
	_, err := r.texts(ctx, r.compiled.Land(), r.compiled.Fields, []*kgo.Record{rec})
	return err
}
