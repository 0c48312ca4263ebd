package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/mergecheck"
	"github.com/kappactl/kappactl/internal/query"
)

// The engines that run a test.
const (
	DuckDB     = "duckdb"
	PostgreSQL = "postgresql"
)

// Result is the result of one test.
type Result struct {
	Name        string       `json:"name"`
	Line        int          `json:"line"` // of the test in the job file
	Engine      string       `json:"engine"`
	OK          bool         `json:"ok"`
	Rows        int          `json:"rows"` // number of actual rows
	Differences []Difference `json:"differences"`
	DeadLetters []DeadLetter `json:"dead_letters"`
	// Error explains why the test did not finish: the query failed on a record, or a value does not have its column's
	// type.
	Error string `json:"error,omitempty"`
	// Unseen names what this engine could not check.
	Unseen string `json:"unseen,omitempty"`
}

// DeadLetter is a given record that cannot be processed; it contributes to no row.
type DeadLetter struct {
	Record int    `json:"record"` // position in given, from 1
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

// Run runs every test of the job; merge is nil without a database. An error means that the tests could not run, not
// that one failed.
func Run(ctx context.Context, spec *job.Spec, c *query.Compiled, merge *mergecheck.Deps) (results []Result, err error) {
	r, err := mergecheck.NewRunner(ctx, spec, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for i, t := range spec.Tests {
		line, _ := spec.Where(fmt.Sprintf("tests[%d]", i))
		one := &run{Runner: r, spec: spec, compiled: c, test: t}
		one.result = Result{
			Name: t.Name, Line: line, Engine: DuckDB, Differences: []Difference{},
			DeadLetters: []DeadLetter{},
		}
		if merge != nil {
			one.result.Engine = PostgreSQL
		}
		if err := one.all(ctx, merge); err != nil {
			return nil, fmt.Errorf("test %q: %w", t.Name, err)
		}
		results = append(results, one.result)
	}
	return results, nil
}

// run is the state of one test.
type run struct {
	*mergecheck.Runner
	spec     *job.Spec
	compiled *query.Compiled
	test     job.Test
	result   Result
}

func (r *run) all(ctx context.Context, merge *mergecheck.Deps) error {
	good, err := r.given(ctx, merge)
	if err != nil {
		return err
	}
	if bad := r.result.DeadLetters; len(bad) > 0 && r.spec.Source.OnError.Fail {
		r.result.Error = fmt.Sprintf("record %d of given cannot be processed, and source.on_error is fail: %s", bad[0].Record,
			bad[0].Detail)
		return nil
	}
	if text := r.deadLetterMismatch(); text != "" {
		r.result.Error = text
		return nil
	}
	var rows []mergecheck.Row
	var want []expected
	columns := r.compiled.Layout.View
	if merge == nil {
		columns = queryColumns(columns)
		if rows, err = r.Answer(ctx, good); err == nil {
			want, err = r.expect(columns, func(i int, v any) (string, error) {
				return r.Session().Convert(ctx, r.compiled, i, v)
			})
		}
	} else {
		err = merge.In(ctx, r.Runner, func(b *mergecheck.Bench) error {
			if rows, columns, err = r.merged(ctx, b, good); err != nil {
				return err
			}
			want, err = r.expect(columns, func(i int, v any) (string, error) {
				return b.Convert(ctx, columns[i].Type, plainText(v, columns[i].Type))
			})
			return err
		})
	}
	if failed, ok := failure(err); ok {
		r.result.Error = failed
		return nil
	}
	if err != nil {
		return err
	}
	r.judge(columns, want, rows)
	return nil
}

// given returns the records of the test that can be processed.
func (r *run) given(ctx context.Context, merge *mergecheck.Deps) ([]*kgo.Record, error) {
	records := make([]*kgo.Record, len(r.test.Given))
	for i, g := range r.test.Given {
		records[i] = r.record(i, g)
	}
	judge := r.Judge
	if merge != nil {
		judge = func(ctx context.Context, records []*kgo.Record) ([]*kgo.Record, []mergecheck.Rejected, error) {
			return r.JudgeIn(ctx, *merge, records)
		}
	}
	good, bad, err := judge(ctx, records)
	for _, b := range bad {
		d := DeadLetter{
			Record: int(b.Record.Offset) + 1, Reason: b.Reason, Detail: strings.TrimPrefix(b.Error(), b.Reason+": "),
		}
		r.result.DeadLetters = append(r.result.DeadLetters, d)
	}
	slices.SortFunc(r.result.DeadLetters, func(a, b DeadLetter) int { return a.Record - b.Record })
	return good, err
}

// record returns a given record as the log would hold it.
func (r *run) record(i int, g job.Given) *kgo.Record {
	out := &kgo.Record{Topic: g.Topic, Partition: g.Partition, Offset: int64(i)}
	if g.Topic == "" {
		out.Topic = r.spec.Source.Topics[0]
	}
	if g.Value != nil {
		out.Value = []byte(*g.Value)
	}
	if g.Key != nil {
		out.Key = []byte(*g.Key)
	}
	if g.Timestamp != nil {
		out.Timestamp = *g.Timestamp
	}
	for _, h := range g.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: []byte(h.Value)})
	}
	return out
}

// merged returns the rows that the view would show, and its columns with their types.
func (r *run) merged(ctx context.Context, b *mergecheck.Bench, records []*kgo.Record) ([]mergecheck.Row,
	[]job.ViewColumn, error,
) {
	for i := range records {
		if err := b.Merge(ctx, records[i:i+1]); err != nil {
			return nil, nil, err
		}
	}
	types, err := b.Types(ctx)
	if err != nil {
		return nil, nil, servedError(err)
	}
	columns := append([]job.ViewColumn{}, r.compiled.Layout.View...)
	for i := range columns {
		columns[i].Type = types[columns[i].Name]
	}
	rows, err := b.Served(ctx, true)
	if err != nil {
		return nil, nil, servedError(err)
	}
	return rows, columns, nil
}

func queryColumns(view []job.ViewColumn) []job.ViewColumn {
	var out []job.ViewColumn
	for _, v := range view {
		if !v.Computed {
			out = append(out, v)
		}
	}
	return out
}
