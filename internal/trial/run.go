package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/law"
	"github.com/kappactl/kappactl/internal/query"
)

// The engines that a test can run in.
const (
	DuckDB     = "duckdb"
	PostgreSQL = "postgresql"
)

// Result is how one test ended.
type Result struct {
	Name        string       `json:"name"`
	Engine      string       `json:"engine"`
	OK          bool         `json:"ok"`
	Rows        int          `json:"rows"` // that came out
	Differences []Difference `json:"differences"`
	DeadLetters []DeadLetter `json:"dead_letters"`
	// Error is why the test could not run to its end: the query fails on a record, or a value is not of its column's type.
	Error string `json:"error,omitempty"`
	// Unseen says what this engine could not look at.
	Unseen string `json:"unseen,omitempty"`
}

// DeadLetter is a given record that cannot be processed; it counts nowhere.
type DeadLetter struct {
	Record int    `json:"record"` // from 1, in the order of given
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

// Run runs every test of the job; merge is nil without a database. An error says that the tests could not be run, not that
// one failed.
func Run(ctx context.Context, spec *job.Spec, c *query.Compiled, merge *law.Deps) (results []Result, err error) {
	r, err := law.NewRunner(ctx, spec, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, t := range spec.Tests {
		one := &run{Runner: r, spec: spec, compiled: c, test: t}
		one.result = Result{Name: t.Name, Engine: DuckDB, Differences: []Difference{}, DeadLetters: []DeadLetter{}}
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

// run is one test under way.
type run struct {
	*law.Runner
	spec     *job.Spec
	compiled *query.Compiled
	test     job.Test
	result   Result
}

func (r *run) all(ctx context.Context, merge *law.Deps) error {
	good, err := r.given(ctx)
	if err != nil {
		return err
	}
	if bad := r.result.DeadLetters; len(bad) > 0 && r.spec.Source.OnError.Fail {
		r.result.Error = fmt.Sprintf("record %d of given cannot be processed, and source.on_error is fail: %s", bad[0].Record, bad[0].Detail)
		return nil
	}
	var rows []law.Row
	var want []expected
	columns := r.compiled.Layout.View
	if merge == nil {
		columns = queryColumns(columns)
		if rows, err = r.Answer(ctx, good); err == nil {
			want, err = r.expect(columns, func(i int, v any) (string, error) { return r.Session().Convert(ctx, r.compiled, i, v) })
		}
	} else {
		err = merge.In(ctx, r.Runner, 1, func(b *law.Bench) error {
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

// given are the records of the test that can be processed.
func (r *run) given(ctx context.Context) ([]*kgo.Record, error) {
	records := make([]*kgo.Record, len(r.test.Given))
	for i, g := range r.test.Given {
		records[i] = r.record(i, g)
	}
	good, bad, err := r.Judge(ctx, records)
	for _, b := range bad {
		d := DeadLetter{Record: int(b.Record.Offset) + 1, Reason: b.Reason, Detail: strings.TrimPrefix(b.Error(), b.Reason+": ")}
		r.result.DeadLetters = append(r.result.DeadLetters, d)
	}
	return good, err
}

// record is a given record as it would stand in the log.
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

// merged is what the view would show, with the types of its columns.
func (r *run) merged(ctx context.Context, b *law.Bench, records []*kgo.Record) ([]law.Row, []job.ViewColumn, error) {
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
