package speedlayer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/serving"
)

// sums is a query with every kind of exact state; the naive pass in oracle computes the same.
const sums = `SELECT k, count(*) AS n, sum(v) AS total, min(v) AS low, max(v) AS high FROM source WHERE v >= 0 GROUP BY k`

// rig is one version on a topic of its own and a database of its own.
type rig struct {
	t       *testing.T
	pool    *pg.Pool
	dsn     string
	brokers []string
	topic   string
	ref     job.Ref
	spec    *job.Spec
	layout  job.Layout
	log     *slog.Logger
	agents  *atomic.Int64
}

type rigOption func(*job.Spec)

func newRig(t *testing.T, brokers []string, partitions int32, sql string, options ...rigOption) *rig {
	t.Helper()
	topic := kafkatest.Name("speed")
	kafkatest.Topic(t, brokers, topic, partitions, nil)
	return newRigOn(t, brokers, topic, sql, options...)
}

// newRigOn is newRig on a topic that is there.
func newRigOn(t *testing.T, brokers []string, topic, sql string, options ...rigOption) *rig {
	t.Helper()
	r := &rig{t: t, brokers: brokers, topic: topic, ref: job.Ref{Job: "sums", Number: 1}, agents: &atomic.Int64{}}
	r.agents.Store(1)
	text := fmt.Sprintf(`
job: sums
source:
  topics: [%s]
  format: json
  columns: {k: text, v: bigint}
  on_error: {dead_letter: {max: 50%%}}
query: |
  %s
serve: {view: public.sums}
live: {every: 20ms}
`, r.topic, sql)
	spec, err := job.Parse("job.yaml", []byte(text))
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
	r.spec, r.layout = spec, compiled.Layout
	newVersion(t, r.pool, r.ref, r.layout, job.Staged, mustJSON(t, spec))
	r.log = slog.New(slog.NewTextHandler(&logLines{t: t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return r
}

func testLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// logLines gives log lines to the test's output.
type logLines struct{ t *testing.T }

func (l *logLines) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(b), "\n"))
	return len(b), nil
}

func (r *rig) phase(p job.Phase) {
	r.t.Helper()
	args := refArgs(r.ref)
	args["phase"] = string(p)
	exec(r.t, r.pool, `UPDATE kappactl.version SET phase = @phase WHERE job = @job AND number = @number`, args)
}

// frozen is the whole topic as it is now.
func (r *rig) frozen(split int64) []job.Frozen {
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
		if p.Err != nil {
			r.t.Fatal(p.Err)
		}
		out = append(out, job.Frozen{Partition: p.Partition, Range: job.Range{From: p.Start, To: p.LastStable}, LeaderEpoch: p.LeaderEpoch, SplitAt: split})
	}
	return out
}

// startReplay freezes the topic as it is and opens the replay.
func (r *rig) startReplay(split int64) {
	r.t.Helper()
	inTx(r.t, r.pool, func(tx *pg.Tx) error {
		return Store{}.Freeze(r.t.Context(), tx, at(r.ref, r.layout), r.frozen(split))
	})
	r.phase(job.Replaying)
}

// build ends the replay as the controller does.
func (r *rig) build() {
	r.t.Helper()
	r.staged()
	inTx(r.t, r.pool, func(tx *pg.Tx) error {
		return Store{}.Seal(r.t.Context(), tx, at(r.ref, r.layout))
	})
	r.phase(job.CatchingUp)
}

// staged waits for the end of the replay and fills the table, without Seal.
func (r *rig) staged() {
	r.t.Helper()
	kafkatest.Until(r.t, "all segments are done", func() bool {
		if failed := lines(r.t, r.pool, `SELECT fault, error FROM kappactl.segment WHERE state = 'failed'`); len(failed) > 0 {
			r.t.Fatalf("segments failed: %v", failed)
		}
		return lines(r.t, r.pool, `SELECT count(*) FROM kappactl.segment WHERE state <> 'done'`)[0] == "(0)"
	})
	r.phase(job.Building)
	if err := (Store{}).Fill(r.t.Context(), r.pool, at(r.ref, r.layout)); err != nil {
		r.t.Fatal(err)
	}
}

// startLive follows the topic from its start without a replay.
func (r *rig) startLive() {
	r.t.Helper()
	inTx(r.t, r.pool, func(tx *pg.Tx) error {
		for _, f := range r.frozen(0) {
			f.To = f.From
			if err := (Store{}).Follow(r.t.Context(), tx, r.ref, f); err != nil {
				return err
			}
		}
		return nil
	})
	r.phase(job.Live)
}

func (r *rig) engine(name string) *Engine {
	e := New(Deps{
		Pool: r.pool, Kafka: kafka.Config{Brokers: r.brokers}, Agent: name, Log: r.log, Now: time.Now,
		Living: func(context.Context) ([]string, error) { return make([]string, r.agents.Load()), nil },
	}, Config{Lease: time.Second, Workers: 2, Timeout: 10 * time.Second, Temp: r.t.TempDir()})
	e.restAfter = 100 * time.Millisecond // in the middle of most tests
	return e
}

// agent runs an engine until the returned function is called or the test ends.
func (r *rig) agent(name string, change func(*Engine)) (stop func()) {
	r.t.Helper()
	e := r.engine(name)
	if change != nil {
		change(e)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil { // as internal/agent does
			if err := e.Run(ctx, r.ref); err != nil {
				r.t.Errorf("Run: %v", err)
				return
			}
			_ = retry.Sleep(ctx, 20*time.Millisecond)
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	r.t.Cleanup(stop)
	return stop
}

// produce appends values k, v to a partition.
func (r *rig) produce(partition int32, from, n int) {
	r.t.Helper()
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: r.topic, Partition: partition, Value: value(from + i)}
	}
	kafkatest.ProduceRecords(r.t, r.brokers, records)
}

func value(i int) []byte {
	v := i%1000 - 100 // every tenth is filtered out
	return fmt.Appendf(nil, `{"k":"key-%d","v":%d}`, (i*7)%50, v)
}

// caughtUp waits until every position stands at the last stable offset.
func (r *rig) caughtUp() {
	r.t.Helper()
	kafkatest.Until(r.t, "the positions reach the end", func() bool {
		ends := map[job.Partition]int64{}
		for _, f := range r.frozen(0) {
			ends[f.Partition] = f.To
		}
		for _, p := range positions(r.t, r.pool, r.ref) {
			if p.Fault.Kind != "" {
				r.t.Fatalf("%s: %+v", p.Partition, p.Fault)
			}
			if p.Next != ends[p.Partition] {
				return false
			}
			delete(ends, p.Partition)
		}
		return len(ends) == 0
	})
}

// served returns the rows of the serving view, one line for each key.
func (r *rig) served() []string {
	r.t.Helper()
	text := serving.New(serving.Config{}).Select(at(r.ref, r.layout))
	out := lines(r.t, r.pool, text)
	slices.Sort(out)
	return out
}

// oracle is one naive pass over the committed records in [start, below) of every partition; nil means everything.
func (r *rig) oracle(below map[int32]int64) []string {
	r.t.Helper()
	return onePass(r.committed(), below)
}

func onePass(records []*kgo.Record, below map[int32]int64) []string {
	type sum struct{ n, total, low, high int64 }
	keys := map[string]*sum{}
	for _, rec := range records {
		if below != nil && rec.Offset >= below[rec.Partition] {
			continue
		}
		var in struct {
			K *string
			V *int64
		}
		if json.Unmarshal(rec.Value, &in) != nil || in.K == nil || in.V == nil || *in.V < 0 || len(*in.K) > maxKey {
			continue
		}
		s := keys[*in.K]
		if s == nil {
			s = &sum{low: *in.V, high: *in.V}
			keys[*in.K] = s
		}
		s.n, s.total, s.low, s.high = s.n+1, s.total+*in.V, min(s.low, *in.V), max(s.high, *in.V)
	}
	var out []string
	for k, s := range keys {
		out = append(out, fmt.Sprintf("(%s,%d,%d,%d,%d)", k, s.n, s.total, s.low, s.high))
	}
	slices.Sort(out)
	return out
}

// committed reads the topic with an ordinary read_committed consumer.
func (r *rig) committed() []*kgo.Record {
	r.t.Helper()
	want := map[int32]int64{}
	at := map[int32]kgo.Offset{}
	for _, f := range r.frozen(0) {
		if f.Len() > 0 {
			want[f.ID], at[f.ID] = f.To, kgo.NewOffset().At(f.From)
		}
	}
	if len(want) == 0 {
		return nil
	}
	client := kafkatest.Client(r.t, r.brokers, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.topic: at}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))
	ctx, cancel := context.WithTimeout(r.t.Context(), 3*time.Minute)
	defer cancel()
	var out []*kgo.Record
	for len(want) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			r.t.Fatal(err)
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			if rec.Offset+1 >= want[rec.Partition] {
				delete(want, rec.Partition)
			}
			if !rec.Attrs.IsControl() {
				out = append(out, rec)
			}
		})
	}
	return out
}

// equal proves that what is served is the oracle's answer.
func (r *rig) equal() {
	r.t.Helper()
	want := r.oracle(nil)
	if len(want) == 0 {
		r.t.Fatal("the oracle has no rows: this test proves nothing")
	}
	if diff := cmp.Diff(want, r.served()); diff != "" {
		r.t.Fatalf("served (+) is not the naive pass (-):\n%s", diff)
	}
}

func (r *rig) one(sql string) int {
	r.t.Helper()
	n, err := strconv.Atoi(strings.Trim(lines(r.t, r.pool, sql)[0], "()"))
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}
