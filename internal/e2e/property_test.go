package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/status"
	"github.com/kappactl/kappactl/serving"
)

// history is one run of the property: a job, its log, and an agent that is killed now and then.
type history struct {
	t     *testing.T
	rt    *rapid.T
	shape shape

	brokers []string
	topic   string
	dsn     string
	pool    *pg.Pool
	store   *reprocess.Store
	views   *serving.Store
	agent   *hosted

	log   []event
	ends  [3]int64
	least map[int]int  // by version: what its query lets pass
	modes map[int]bool // by least: whether the version is of mode lambda
	next  int          // least of the version that is deployed next
}

// TestTheViewEqualsOnePassAfterAnything deploys, promotes, rolls back, deploys again and retires versions of random jobs over
// random records while agents are killed, and after each step compares every version that reads with one pass over the log.
func TestTheViewEqualsOnePassAfterAnything(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"rapid.checks": "5", "rapid.nofailfile": "true", "rapid.shrinktime": "10s"}
	if soak {
		settings["rapid.checks"] = "300"
	}
	for name, value := range settings {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue { // not given on the command line
			if err := flag.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	brokers := kafkatest.Fake(t)
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory(t, rt, brokers)
		defer h.end()
		h.produce()
		h.deploy()
		for range rapid.IntRange(4, 8).Draw(rt, "steps") {
			rapid.SampledFrom(h.steps()).Draw(rt, "step").do()
		}
	})
}

func newHistory(t *testing.T, rt *rapid.T, brokers []string) *history {
	h := &history{t: t, rt: rt, brokers: brokers, topic: kafkatest.Name("events"), views: serving.New(serving.Config{}), least: map[int]int{}, modes: map[int]bool{}}
	h.shape = shapes()[rapid.SampledFrom(slices.Sorted(maps.Keys(shapes()))).Draw(rt, "shape")]
	kafkatest.Topic(t, brokers, h.topic, int32(len(h.ends)), nil)
	h.pool, h.dsn = pgtest.New(t)
	h.store = reprocess.NewStore(h.pool)
	h.agent = hostAgent(t, brokers, h.dsn)
	return h
}

// end leaves nothing running for the next history.
func (h *history) end() {
	h.agent.cut()
	<-h.agent.ended
}

// step is something that can be done now; its name is what rapid prints.
type step struct {
	name string
	do   func()
}

func (s step) String() string { return s.name }

// steps are what makes sense in the state of the job.
func (h *history) steps() []step {
	status := h.status()
	out := []step{{"produce", h.produce}, {"deploy", h.deploy}}
	for _, v := range status.Versions {
		n := number(v.Version)
		if v.Phase.Consumes() && h.modes[h.least[n]] {
			out = append(out, step{"rotate " + v.Version, func() { h.rotate(n) }})
		}
		switch {
		case v.Phase == job.Verified:
			out = append(out, step{"promote " + v.Version, func() { h.promote(n) }})
		case v.Phase == job.Standby && v.RolledBackAt != nil:
			out = append(out, step{"deploy again " + v.Version, func() { h.again(n) }})
		}
		if v.Phase == job.Standby {
			out = append(out, step{"rollback to " + v.Version, func() { h.ask(n, ledger.Rollback, ledger.Args{}) }},
				step{"retire " + v.Version, func() { h.ask(n, ledger.Retire, ledger.Args{Now: true}) }})
		}
	}
	return out
}

func number(v string) int {
	n, err := job.ParseNumber(v)
	if err != nil {
		panic(err)
	}
	return int(n)
}

func (h *history) status() status.Job {
	s, err := h.store.Status(h.t.Context(), "events")
	h.must(err)
	return s
}

func (h *history) must(err error) {
	if err != nil {
		h.rt.Fatal(err)
	}
}

// produce appends random records, and compares when they are read.
func (h *history) produce() {
	n := rapid.IntRange(1, 200).Draw(h.rt, "records")
	keys := rapid.SampledFrom([]string{"a", "b", "ä|ö", "", "日本", "x'y\"z", "~~"})
	var records []*kgo.Record
	for range n {
		e := event{seq: int64(len(h.log))}
		if rapid.IntRange(0, 9).Draw(h.rt, "null key") > 0 {
			e.k = new(keys.Draw(h.rt, "k"))
		}
		if rapid.IntRange(0, 9).Draw(h.rt, "null value") > 0 {
			e.v = new(rapid.Int64Range(-3, 20).Draw(h.rt, "v"))
		}
		p := rapid.IntRange(0, len(h.ends)-1).Draw(h.rt, "partition")
		h.log, h.ends[p] = append(h.log, e), h.ends[p]+1
		records = append(records, &kgo.Record{Topic: h.topic, Partition: int32(p), Value: e.value()})
	}
	h.during("read", func() {
		kafkatest.ProduceRecords(h.t, h.brokers, records, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	})
}

const eventsJob = `job: events
source:
  topics: [%s]
  format: json
  columns: {k: text, v: bigint, seq: bigint}
query: |
  %s
serve: {view: public.events%s}
ready: {max_lag_time: 5s, stable_for: 0s}
live: {every: 20ms}
checks:
  - {name: answers, sql: "SELECT count(*) >= 0 FROM candidate"}
`

func (h *history) stage(least int, change func(*plan.Staging)) plan.Staged {
	spec, err := job.Parse("job.yaml", fmt.Appendf(nil, eventsJob, h.topic, fmt.Sprintf(h.shape.query, least), h.shape.serve))
	h.must(err)
	if h.modes[least] {
		spec.Mode = job.Lambda
	}
	q, err := query.Compile(h.t.Context(), spec)
	h.must(err)
	in := plan.Staging{
		Spec: spec, Layout: q.Layout, Hash: spec.Hash(query.Dialect), Dialect: query.Dialect, Engine: query.Engine(), By: "rapid",
		File: string(spec.Text), Serving: h.views,
	}
	if change != nil {
		change(&in)
	}
	staged, err := h.store.Stage(h.t.Context(), in)
	h.must(err)
	return staged
}

// deploy stages a version whose query lets other records pass than any before.
func (h *history) deploy() {
	h.next++
	h.modes[h.next-2] = rapid.Bool().Draw(h.rt, "lambda")
	staged := h.stage(h.next-2, nil)
	h.least[int(staged.Number)] = h.next - 2
	h.during("deploy", func() { h.finish(staged.Deployment, "") })
}

// rotate begins the next epoch of a version of mode lambda.
func (h *history) rotate(n int) {
	h.must(h.pool.ReadCommitted(h.t.Context(), func(tx *pg.Tx) error {
		args := pgx.NamedArgs{"n": n}
		for _, sql := range []string{
			`SELECT 1 FROM kappactl.version WHERE number = @n FOR NO KEY UPDATE`,
			`SELECT 1 FROM kappactl.position WHERE number = @n ORDER BY topic_id, partition FOR UPDATE`,
			`UPDATE kappactl.position SET epoch = epoch + 1 WHERE number = @n`,
		} {
			if _, err := tx.Exec(h.t.Context(), sql, args); err != nil {
				return err
			}
		}
		return nil
	}))
	h.produce()
}

// promote compares the version with what is live now, as deploying it again does, and flips.
func (h *history) promote(n int) {
	h.stage(h.least[n], nil)
	h.ask(n, ledger.Promote, ledger.Args{})
}

func (h *history) again(n int) {
	staged := h.stage(h.least[n], func(in *plan.Staging) { in.Again = true })
	if !staged.FlipOnly || int(staged.Number) != n {
		h.rt.Fatalf("deploy of v%d again: %+v", n, staged)
	}
	h.during("deploy again", func() { h.finish(staged.Deployment, "live") })
}

func (h *history) finish(deployment int64, goal string) {
	h.await(fmt.Sprintf("%s of deployment %d", goal, deployment), func() bool {
		d, err := h.store.Deployment(h.t.Context(), deployment)
		h.must(err)
		code, done := d.Outcome(goal)
		if done && code != job.ExitOK {
			h.rt.Fatalf("exit code %d: %+v", code, d)
		}
		return done
	})
}

func (h *history) ask(n int, verb ledger.Verb, args ledger.Args) {
	id, err := h.store.Ask(h.t.Context(), ledger.Request{Job: "events", Number: job.Number(n), Verb: verb, Args: args, By: "rapid"})
	h.must(err)
	h.during(string(verb), func() {
		h.await(fmt.Sprintf("answer to %s v%d", verb, n), func() bool {
			a, err := h.store.Answer(h.t.Context(), id)
			h.must(err)
			if a != nil && a.Code != job.ExitOK {
				h.rt.Fatalf("%s v%d: %+v", verb, n, a)
			}
			return a != nil
		})
	})
}

// during waits for what was begun, may kill the agent meanwhile, and compares afterwards.
func (h *history) during(what string, wait func()) {
	if after := rapid.IntRange(-60, 120).Draw(h.rt, "kill after ms"); after >= 0 {
		end := h.agent.cut
		if rapid.IntRange(0, 3).Draw(h.rt, "with grace") == 0 {
			end = h.agent.cancel
		}
		time.AfterFunc(time.Duration(after)*time.Millisecond, end)
		h.agent = hostAgent(h.t, h.brokers, h.dsn)
	}
	wait()
	h.compare(what)
}

func (h *history) await(what string, ok func() bool) {
	ctx, cancel := context.WithTimeout(h.t.Context(), 3*time.Minute)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			h.rt.Fatalf("%s did not happen: %+v", what, h.status())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// compare waits until every version that reads stands at the end of the log, and compares each, and the view, with one pass.
func (h *history) compare(what string) {
	if len(h.least) == 0 {
		return // nothing is deployed yet
	}
	status := h.status()
	for _, v := range status.Versions {
		if !v.Phase.Consumes() {
			continue
		}
		n := number(v.Version)
		h.await(fmt.Sprintf("after %s: v%d at the end", what, n), func() bool { return h.atEnd(n) })
		ref := job.Ref{Job: "events", Number: job.Number(n)}
		var text string
		h.must(h.pool.QueryRow(h.t.Context(), `SELECT layout::text FROM kappactl.version WHERE number = @n`, pgx.NamedArgs{"n": n}).Scan(&text))
		h.same(fmt.Sprintf("after %s: %s (%s)", what, v.Version, v.Phase), "("+h.views.Select(job.Version{Ref: ref, Schema: "public", Layout: layoutOf(h.rt, text)})+") AS s", h.least[n])
		if v.Phase == job.Live {
			h.same(fmt.Sprintf("after %s: the view, which reads %s", what, v.Version), "public.events", h.least[n])
		}
	}
}

func (h *history) atEnd(n int) bool {
	var behind int
	h.must(h.pool.QueryRow(h.t.Context(), `SELECT count(*) FROM unnest(@ends::bigint[]) WITH ORDINALITY AS e (upto, nth)
		LEFT JOIN kappactl.position p ON p.number = @n AND p.partition = e.nth - 1 WHERE p.next IS DISTINCT FROM e.upto`,
		pgx.NamedArgs{"ends": h.ends[:], "n": n}).Scan(&behind))
	return behind == 0
}

// same compares the rows of a relation with one pass over the log.
func (h *history) same(what, relation string, least int) {
	rows, err := h.pool.Query(h.t.Context(), `SELECT `+h.shape.line+` FROM `+relation)
	h.must(err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	h.must(err)
	var passing []event
	for _, e := range h.log {
		if e.v != nil && *e.v >= int64(least) {
			passing = append(passing, e)
		}
	}
	want := h.shape.naive(passing)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		h.rt.Fatalf("%s differs from one pass (-pass +served):\n%s", what, clip(cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n"))))
	}
}

func layoutOf(rt *rapid.T, text string) (l job.Layout) {
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		rt.Fatal(err)
	}
	return l
}
