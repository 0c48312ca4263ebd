package speedlayer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/query"
)

// costs are queries that one record with v = 900000 is too much for, each in its own way.
var costs = map[string]string{
	"a value":  `SELECT k, count(*) AS n FROM (SELECT k, unnest(range(v * 10)) AS i FROM source) GROUP BY k`,
	"memory":   `SELECT k, lpad(CAST(i AS VARCHAR), 150, 'x') AS x, count(*) AS n FROM (SELECT k, unnest(range(v)) AS i FROM source) GROUP BY k, x`,
	"rows":     `SELECT k, unnest(range(v)) AS i FROM source`,
	"its time": `SELECT k, max(sha256(sha256(sha256(sha256(sha256(sha256(CAST(i AS VARCHAR)))))))) AS n FROM (SELECT k, unnest(range(v)) AS i FROM source) GROUP BY k`,
}

func thrifty(e *Engine) {
	e.config.Memory, e.config.Temp, e.patience = 100_000_000, "", time.Second
}

// TestARecordThatIsTooExpensiveIsADeadLetter and stops nothing: it was tried again until the process ended, and all partitions waited
// behind it.
func TestARecordThatIsTooExpensiveIsADeadLetter(t *testing.T) {
	t.Parallel()
	for name, sql := range costs {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kafkatest.Fake(t), 3, sql)
			r.startLive()
			for p := range int32(3) {
				var values []string
				for i := range 20 {
					v := 3
					if p == 1 && i == 7 {
						v = 900_000
					}
					values = append(values, fmt.Sprintf(`{"k":"x","v":%d}`, v))
				}
				kafkatest.Produce(t, r.brokers, r.topic, p, values...)
			}
			r.agent("a", thrifty)
			r.caughtUp()
			if diff := cmp.Diff([]string{"(1,7,too_expensive)"}, lines(t, r.pool, `SELECT partition, "offset", reason FROM kappactl.dead_letter`)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"(20)", "(20)", "(20)"}, lines(t, r.pool, `SELECT records FROM kappactl.position`)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestARecordThatIsTooExpensiveForAReplayIsADeadLetter, and its segment is done.
func TestARecordThatIsTooExpensiveForAReplayIsADeadLetter(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a value", "memory", "its time"} { // rows are not held in a replay
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kafkatest.Fake(t), 1, costs[name])
			kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"x","v":3}`, `{"k":"poison","v":900000}`, `{"k":"x","v":3}`)
			r.startReplay(0)
			r.agent("a", thrifty)
			r.build()
			if diff := cmp.Diff([]string{"(1,too_expensive)"}, lines(t, r.pool, `SELECT "offset", reason FROM kappactl.dead_letter`)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestASegmentThatAgentsDieOfIsLeftAfterSomeAttempts: each agent in turn took it up, and it kept its place in agent.replays.
func TestASegmentThatAgentsDieOfIsLeftAfterSomeAttempts(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.produce(0, 200, 30)
	r.startReplay(15)
	// Four agents claimed the first segment and died.
	exec(t, r.pool, `UPDATE kappactl.segment SET state = 'claimed', attempts = 4, owner = 'dead', lease = clock_timestamp() WHERE from_offset = 0`, nil)
	e := r.engine("a")
	w := r.worker(e)
	for range 2 {
		if _, err := w.one(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"(0,done)", "(15,done)"}, lines(t, r.pool, `SELECT from_offset, state FROM kappactl.segment ORDER BY 1`)); diff != "" {
		t.Error(diff)
	}
	exec(t, r.pool, `UPDATE kappactl.segment SET state = 'claimed', attempts = 5, owner = 'dead', lease = clock_timestamp() WHERE from_offset = 0`, nil)
	if _, err := w.one(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"(0,failed,query)", `(15,done,"")`}, lines(t, r.pool, `SELECT from_offset, state, fault FROM kappactl.segment ORDER BY 1`)); diff != "" {
		t.Error(diff)
	}
}

// TestAPartitionWhoseBatchWasTooMuchIsCommittedByItselfBehindTheOthers until it is past it.
func TestAPartitionWhoseBatchWasTooMuchIsCommittedByItselfBehindTheOthers(t *testing.T) {
	t.Parallel()
	e := New(Deps{Now: time.Now}, Config{})
	l := &live{run: &run{Engine: e, quiet: newQuiet(testLog(t.Output()), time.Now)}, limit: noLimit, owned: map[job.Partition]*owned{}}
	for id := range int32(3) {
		o := &owned{partition: job.Partition{Topic: "t", ID: id}}
		for i := range int64(8) {
			o.records = append(o.records, &kgo.Record{Offset: i})
		}
		o.read = 8
		l.owned[o.partition] = o
	}
	var got []string
	next := func() []part {
		parts := l.nextBatch()
		text := ""
		for _, p := range parts {
			text += fmt.Sprintf("%d:%d-%d ", p.partition.ID, p.from, p.to)
		}
		got = append(got, text)
		return parts
	}
	much := &query.ResourceError{Err: errSlow, Costly: true}
	pass := func(parts []part) {
		for _, p := range parts {
			p.rewind(p.to)
		}
		l.widen(parts)
	}
	all := next()
	if err := l.tooMuch(all[:2], much); err != nil { // partitions 0 and 1
		t.Fatal(err)
	}
	pass(next()) // 2, which had no part in it
	l.limit = noLimit
	if err := l.tooMuch(next(), much); err != nil { // 0 alone is too much still
		t.Fatal(err)
	}
	pass(next()) // 1 waited longer
	pass(next())
	pass(next())
	next()
	want := []string{"0:0-8 1:0-8 2:0-8 ", "2:0-8 ", "0:0-8 ", "1:0-8 ", "0:0-4 ", "0:4-8 ", ""}
	if !slices.Equal(got, want) {
		t.Errorf("batches\n%q, want\n%q", got, want)
	}
}
