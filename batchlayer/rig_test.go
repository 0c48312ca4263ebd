package batchlayer

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/serving"
	"github.com/kappactl/kappactl/speedlayer"
)

// sums is a query with every kind of exact state.
const sums = `SELECT k, count(*) AS n, sum(v) AS total, min(v) AS low, max(v) AS high FROM source WHERE v >= 0 GROUP BY k`

// rig is one live lambda version on a topic of its own and a database of its own.
type rig struct {
	t       *testing.T
	pool    *pg.Pool
	dsn     string
	brokers []string
	topic   string
	v       job.Version
	store   *ledger.Store
	next    int // the first value that was not produced
}

type option func(*job.Spec)

func withBatch(change func(*job.Batch)) option {
	return func(s *job.Spec) {
		b := s.Generations()
		change(&b)
		s.Batch = &b
	}
}

func newRig(t *testing.T, sql string, options ...option) *rig {
	t.Helper()
	r := &rig{t: t, brokers: kafkatest.Fake(t), topic: kafkatest.Name("batch")}
	kafkatest.Topic(t, r.brokers, r.topic, 2, nil)
	spec, err := job.Parse("job.yaml", []byte(fmt.Sprintf(`
job: sums
mode: lambda
source:
  topics: [%s]
  format: json
  columns: {k: text, v: bigint, at: timestamp}
  on_error: {dead_letter: {max: 50%%}}
query: |
  %s
serve: {view: public.sums}
live: {every: 20ms}
archive: {location: "file://%s"}
`, r.topic, sql, t.TempDir())))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range options {
		o(spec)
	}
	compiled, err := query.Compile(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	r.pool, r.dsn = pgtest.New(t)
	r.v = job.Version{Ref: job.Ref{Job: "sums", Number: 1}, Schema: "public", Layout: compiled.Layout}
	r.store = ledger.NewStore(r.pool)
	text, layout, err := ledger.EncodeSpec(spec, compiled.Layout)
	if err != nil {
		t.Fatal(err)
	}
	r.exec(`INSERT INTO kappactl.job (name, view_schema, view_name, live) VALUES ('sums', 'public', 'sums', 1)`)
	_, err = r.pool.Exec(t.Context(), `INSERT INTO kappactl.version (job, number, hash, spec, layout, dialect, engine, phase)
		VALUES ('sums', 1, 'x', $1::jsonb, $2::jsonb, $3, 'test', 'live')`, text, layout, query.Dialect)
	if err != nil {
		t.Fatal(err)
	}
	r.startLive()
	return r
}

// startLive makes the version's tables with an empty generation 0, and follows the topic from its start.
func (r *rig) startLive() {
	r.t.Helper()
	tables := serving.New(serving.Config{})
	for _, step := range []func(context.Context, pg.DB, job.Version) error{tables.Create, tables.Index, tables.Analyze} {
		if err := step(r.t.Context(), r.pool, r.v); err != nil {
			r.t.Fatal(err)
		}
	}
	store := speedlayer.Store{}
	for _, step := range []func(tx *pg.Tx) error{
		func(tx *pg.Tx) error { return store.Freeze(r.t.Context(), tx, r.v, r.frozen()) },
		func(tx *pg.Tx) error { return store.Seal(r.t.Context(), tx, r.v) },
	} {
		if err := r.pool.ReadCommitted(r.t.Context(), step); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) frozen() []job.Frozen {
	r.t.Helper()
	admin, err := kafka.NewAdmin(kafka.Config{Brokers: r.brokers})
	if err != nil {
		r.t.Fatal(err)
	}
	defer admin.Close()
	topics, err := admin.Topics(r.t.Context(), []string{r.topic})
	if err != nil {
		r.t.Fatal(err)
	}
	var out []job.Frozen
	for _, p := range topics[0].Partitions {
		out = append(out, job.Frozen{Partition: p.Partition, Range: job.Range{From: p.Start, To: p.LastStable}, LeaderEpoch: p.LeaderEpoch})
	}
	return out
}

type agentOption func(*Runner)

// agent runs an agent with an engine and a Runner until the returned function is called or the test ends.
func (r *rig) agent(name string, options ...agentOption) (stop func()) {
	r.t.Helper()
	log := slog.New(slog.NewTextHandler(&logLines{t: r.t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	admin, err := kafka.NewAdmin(kafka.Config{Brokers: r.brokers})
	if err != nil {
		r.t.Fatal(err)
	}
	engine := speedlayer.New(speedlayer.Deps{
		Pool: r.pool, Kafka: kafka.Config{Brokers: r.brokers}, Admin: admin, Agent: name, Log: log, Now: time.Now,
		Living: func(ctx context.Context) ([]string, error) { return agent.IDs(ctx, r.pool, 5*time.Second) },
	}, speedlayer.Config{Lease: time.Second, Workers: 2, Timeout: 10 * time.Second, Temp: r.t.TempDir()})
	batches := New(Deps{
		Pool: r.pool, Brokers: admin, Speed: &speedlayer.Store{}, Serving: serving.New(serving.Config{}), Log: log, Now: time.Now,
	}, Config{Poll: 20 * time.Millisecond})
	for _, o := range options {
		o(batches)
	}
	a := agent.New(agent.Deps{Pool: r.pool, Runner: engine, Work: batches.Work(), Log: log, Now: time.Now},
		agent.Config{ID: name, Dialect: query.Dialect, Poll: 50 * time.Millisecond, Heartbeat: 200 * time.Millisecond, Lease: time.Second})
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := a.Run(ctx); err != nil {
			r.t.Errorf("agent %s: %v", name, err)
		}
	}()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			<-done
			admin.Close()
		}
	}
	r.t.Cleanup(stop)
	return stop
}

type logLines struct{ t *testing.T }

func (l *logLines) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(b), "\n"))
	return len(b), nil
}

// produce appends n records, every fourth to partition 1.
func (r *rig) produce(n int) {
	r.t.Helper()
	records := make([]*kgo.Record, n)
	for i := range records {
		at := r.next + i
		records[i] = &kgo.Record{Topic: r.topic, Partition: int32(min(1, at%4/3)), Value: value(at)} //nolint:gosec // 0 or 1
	}
	r.next += n
	kafkatest.ProduceRecords(r.t, r.brokers, records)
}

func value(i int) []byte {
	return fmt.Appendf(nil, `{"k":"key-%d","v":%d}`, (i*7)%50, i%1000-100)
}

// caughtUp waits until the version has committed all that was produced.
func (r *rig) caughtUp() {
	r.t.Helper()
	kafkatest.Until(r.t, "the positions reach the end", func() bool {
		return r.one(`SELECT coalesce(sum(next), 0) FROM kappactl.position`) == fmt.Sprint(r.next)
	})
}

// want is one naive pass over the first n values.
func want(n int) []string {
	type sum struct{ n, total, low, high int64 }
	keys := map[string]*sum{}
	for i := range n {
		var in struct {
			K string
			V int64
		}
		if err := json.Unmarshal(value(i), &in); err != nil {
			panic(err)
		}
		if in.V < 0 {
			continue
		}
		s := keys[in.K]
		if s == nil {
			s = &sum{low: in.V, high: in.V}
			keys[in.K] = s
		}
		s.n, s.total, s.low, s.high = s.n+1, s.total+in.V, min(s.low, in.V), max(s.high, in.V)
	}
	var out []string
	for k, s := range keys {
		out = append(out, fmt.Sprintf("(%s,%d,%d,%d,%d)", k, s.n, s.total, s.low, s.high))
	}
	slices.Sort(out)
	return out
}

// served returns the rows of the serving view, one line for each key.
func (r *rig) served() []string {
	r.t.Helper()
	out := r.lines(serving.New(serving.Config{}).Select(r.v))
	slices.Sort(out)
	return out
}

func (r *rig) equal(when string) {
	r.t.Helper()
	if diff := cmp.Diff(want(r.next), r.served()); diff != "" {
		r.t.Fatalf("%s: served (+) is not the naive pass (-):\n%s", when, diff)
	}
}

// ask writes a request and waits for its answer.
func (r *rig) ask(verb ledger.Verb, args ledger.Args) ledger.Answer {
	r.t.Helper()
	return r.answer(r.asked(verb, args))
}

func (r *rig) asked(verb ledger.Verb, args ledger.Args) int64 {
	r.t.Helper()
	id, err := r.store.Ask(r.t.Context(), ledger.Request{Job: r.v.Job, Number: r.v.Number, Verb: verb, Args: args, By: "ann"})
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *rig) answer(id int64) (out ledger.Answer) {
	r.t.Helper()
	kafkatest.Until(r.t, "the request is answered", func() bool {
		a, err := r.store.Answer(r.t.Context(), id)
		if err != nil {
			r.t.Fatal(err)
		}
		if a != nil {
			out = *a
		}
		return a != nil
	})
	return out
}

// run computes a generation, which must be shown.
func (r *rig) run(args ledger.Args) {
	r.t.Helper()
	if a := r.ask(ledger.BatchRun, args); a.Code != job.ExitOK {
		r.t.Fatalf("batch run: exit %d, %s", a.Code, a.Text())
	}
}

func (r *rig) generations() map[int]generation.State {
	r.t.Helper()
	all, err := generation.List(r.t.Context(), r.pool, r.v.Ref)
	if err != nil {
		r.t.Fatal(err)
	}
	out := map[int]generation.State{}
	for _, g := range all {
		out[g.Generation] = g.State
	}
	return out
}

// layers are those of the version.
func (r *rig) layers() Layers {
	r.t.Helper()
	found, err := LayersOf(r.t.Context(), r.pool, &speedlayer.Store{}, "")
	if err != nil || len(found) != 1 || found[0].Version != "v1" {
		r.t.Fatalf("layers %+v: %v", found, err)
	}
	return found[0]
}

// dropped waits until nothing is left of a generation.
func (r *rig) dropped(generation int) {
	r.t.Helper()
	kafkatest.Until(r.t, fmt.Sprintf("generation %d is dropped", generation), func() bool {
		return r.one(fmt.Sprintf(`SELECT count(*) FROM kappactl.generation WHERE generation = %d AND dropped_at IS NOT NULL`, generation)) == "1"
	})
}

func (r *rig) exec(sql string) {
	r.t.Helper()
	if _, err := r.pool.Exec(r.t.Context(), sql); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

func (r *rig) lines(sql string) []string {
	r.t.Helper()
	rows, err := r.pool.Query(r.t.Context(), "SELECT q::text FROM ("+sql+") AS q")
	if err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return out
}

func (r *rig) one(sql string) string {
	r.t.Helper()
	return strings.Trim(r.lines(sql)[0], "()")
}
