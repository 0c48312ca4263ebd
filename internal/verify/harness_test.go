package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/leaktest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/serving"
)

func TestMain(m *testing.M) {
	leaktest.Main(func() int {
		defer kafkatest.Stop()
		return pgtest.Run(m)
	})
}

const pageviews = `
job: hits
source:
  topics: [TOPIC]
  format: json
  columns: {url: text, ts: timestamptz, ms: bigint, score: double precision}
query: |
  SELECT url, date_trunc('hour', ts) AS hour, count(*) AS views, sum(ms) AS total, avg(ms) AS mean, max(score) AS best, sum(score) AS scores
  FROM source GROUP BY url, hour
serve:
  view: public.hits
  where: views > 1000
  columns: {per_view: total / views}
`

// world is a version that has read its topic, the way the speed layer would have left it.
type world struct {
	t       *testing.T
	pool    *pg.Pool
	brokers []string
	topic   string
	admin   *kafka.Admin
	spec    *job.Spec
	query   *query.Compiled
	ref     job.Ref
}

// newWorld stages version 1 of the job file over a fresh topic of two partitions.
func newWorld(t *testing.T, brokers []string, file string) *world {
	t.Helper()
	w := &world{t: t, brokers: brokers, topic: kafkatest.Name("hits"), ref: job.Ref{Job: "hits", Number: 1}}
	w.pool, _ = pgtest.New(t)
	kafkatest.Topic(t, brokers, w.topic, 2, nil)
	var err error
	w.admin, err = kafka.NewAdmin(kafka.Config{Brokers: brokers})
	w.must(err)
	t.Cleanup(w.admin.Close)
	w.spec, err = job.Parse("job.yaml", []byte(strings.ReplaceAll(file, "TOPIC", w.topic)))
	w.must(err)
	w.query, err = query.Compile(t.Context(), w.spec)
	w.must(err)
	spec, err := json.Marshal(w.spec)
	w.must(err)
	layout, err := json.Marshal(w.query.Layout)
	w.must(err)
	w.exec(`INSERT INTO kappactl.job (name, view_schema, view_name) VALUES ('hits', 'public', 'hits')`)
	w.exec(`INSERT INTO kappactl.version (job, number, hash, spec, layout, dialect, engine, phase) VALUES ('hits', 1, '', $1::jsonb, $2::jsonb, $3, '', 'live')`,
		string(spec), string(layout), query.Dialect)
	store := serving.New(serving.Config{})
	w.must(store.Create(t.Context(), w.pool, job.Version{Ref: w.ref, Schema: "public", Layout: w.query.Layout}))
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// hit is one record.
func hit(url, ts string, ms int) string {
	return fmt.Sprintf(`{"url":%q,"ts":%q,"ms":%d,"score":%d.5}`, url, ts, ms, ms)
}

// process produces the values of each partition and lets the version have read them, except the offsets of skip.
func (w *world) process(values map[int32][]string, skip ...int64) {
	w.t.Helper()
	for p, v := range values {
		kafkatest.Produce(w.t, w.brokers, w.topic, p, v...)
	}
	decoder, err := format.New(w.spec.Source, w.query.Fields)
	w.must(err)
	defer decoder.Close()
	facts, err := w.admin.Topics(w.t.Context(), []string{w.topic})
	w.must(err)
	for _, f := range facts[0].Partitions {
		w.exec(`INSERT INTO kappactl.position (job, number, topic_id, topic, partition, next, covers_from, frozen_end) VALUES ('hits', 1, $1, $2, $3, $4, 0, 0)`,
			f.TopicID.String(), w.topic, f.ID, len(values[f.ID]))
		for i, v := range values[f.ID] {
			if contains(skip, int64(i)) {
				continue
			}
			reject := decoder.Append(&kgo.Record{Topic: w.topic, Partition: f.ID, Offset: int64(i), Value: []byte(v)})
			if reject != nil {
				w.exec(`INSERT INTO kappactl.dead_letter (job, number, topic_id, topic, partition, "offset", reason) VALUES ('hits', 1, $1, $2, $3, $4, $5)`,
					f.TopicID.String(), w.topic, f.ID, i, reject.Reason)
			}
		}
	}
	w.land(decoder)
}

// land stores the partial states of what the decoder holds.
func (w *world) land(decoder *format.Decoder) {
	w.t.Helper()
	session, err := query.Open(w.t.Context(), query.Config{})
	w.must(err)
	defer func() { w.must(session.Close()) }()
	batch := decoder.Take()
	defer batch.Release()
	names, types := w.query.Layout.StagedColumns()
	w.must(session.Run(w.t.Context(), w.query.Land(), newOne(batch), func(b arrow.RecordBatch) error {
		for row := range int(b.NumRows()) {
			items, args := make([]string, len(names)), make([]any, len(names))
			for i := range names {
				items[i] = fmt.Sprintf("$%d::text::%s", i+1, types[i])
				if col := b.Column(i).(*array.String); !col.IsNull(row) {
					args[i] = strings.Clone(col.Value(row))
				}
			}
			sql := fmt.Sprintf("INSERT INTO public.hits__v1 VALUES (%s)", strings.Join(items, ", "))
			if _, err := w.pool.Exec(w.t.Context(), sql, args...); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	}))
}

func contains(all []int64, n int64) bool {
	for _, a := range all {
		if a == n {
			return true
		}
	}
	return false
}

func (w *world) try(o Options) (Report, error) {
	return Run(w.t.Context(), Deps{
		Pool: w.pool, Kafka: kafka.Config{Brokers: w.brokers}, Admin: w.admin, Views: serving.New(serving.Config{}), Temp: w.t.TempDir(),
	}, w.ref, o)
}

func (w *world) verify(o Options) Report {
	w.t.Helper()
	report, err := w.try(o)
	w.must(err)
	return report
}

// wantEqual fails unless the report says so.
func wantEqual(t *testing.T, r Report, rows, records int64) {
	t.Helper()
	if !r.Equal || r.Differences != 0 || len(r.Examples) != 0 || r.Rows != rows || r.Records != records {
		t.Errorf("report: %+v, want %d equal rows of %d records", r, rows, records)
	}
}

// wantDifferences fails unless the examples read like that.
func wantDifferences(t *testing.T, r Report, want ...string) {
	t.Helper()
	if r.Equal || r.Differences != int64(len(want)) || len(r.Examples) != len(want) {
		t.Fatalf("report: %+v, want %d differences", r, len(want))
	}
	for i, e := range r.Examples {
		if e.String() != want[i] {
			t.Errorf("difference %d is\n     %s\nwant %s", i, e, want[i])
		}
	}
}

func wantRefusal(t *testing.T, err error, code job.ExitCode, parts ...string) {
	t.Helper()
	var r *job.Refusal
	if !errors.As(err, &r) || r.Code != code {
		t.Fatalf("got %v, want a refusal with code %d", err, code)
	}
	for _, p := range parts {
		if !strings.Contains(r.Cause+" / "+r.Next, p) {
			t.Errorf("refusal %q / %q lacks %q", r.Cause, r.Next, p)
		}
	}
}
