package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// orderRows appends; customerRows keeps the latest of each key.
const (
	orderRows = `job: orders
source:
  topics: [%s]
  columns: {id: text, amount: bigint, ts: timestamptz}
  on_error: {dead_letter: {max: 50%%}}
query: SELECT coalesce(id, decode(_key)) AS id, amount, ts FROM source WHERE amount IS NULL OR amount >= %d
serve: {view: public.orders, columns: {twice: amount * 2}}
ready: {max_lag_time: 5s, stable_for: 0s}
live: {every: 20ms}
tests:
  - {name: one, given: ['{"id":"a","amount":500}', '{"id":"b","amount":-1}'], expect: [{id: a, amount: 500, twice: 1000}]}
`
	customerServe = `serve: {view: public.orders, key: [id], columns: {twice: amount * 2}}`
)

// TestRowsThroughEveryCommand is the life of a job without an aggregate: checked, tested, planned, deployed, looked at, changed.
func TestRowsThroughEveryCommand(t *testing.T) {
	t.Parallel()
	for name, upsert := range map[string]bool{"append": false, "upsert": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, kafkatest.Fake(t))
			w.serve()
			topic := kafkatest.Name("orders")
			kafkatest.Topic(t, w.brokers, topic, 3, nil)
			text := orderRows
			if upsert {
				text = strings.Replace(text, "serve: {view: public.orders, columns: {twice: amount * 2}}", customerServe, 1)
			}
			w.rows(topic, text, upsert)
		})
	}
}

func order(topic string, i, amount int) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: int32(i % 3), Key: fmt.Appendf(nil, "o%d", i%300), Value: fmt.Appendf(nil, `{"id":"o%d","amount":%d,"ts":"2026-01-01T00:00:%02dZ"}`, i%300, amount, i%60)}
}

func (w *world) rows(topic, text string, upsert bool) {
	t := w.t
	const n = 1500
	kafkatest.ProduceMany(t, w.brokers, n, func(i int) *kgo.Record { return order(topic, i, i) }, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	served, changed := n, 10
	if upsert {
		served = 300
		kafkatest.ProduceRecords(t, w.brokers, []*kgo.Record{{Topic: topic, Partition: 0, Key: []byte("o7")}, {Topic: topic, Partition: 0, Key: []byte("o8")}})
	} else {
		kafkatest.ProduceRecords(t, w.brokers, []*kgo.Record{{Topic: topic, Partition: 0, Value: []byte(`{"id":"x","amount":"seven"}`)}, {Topic: topic, Partition: 0, Value: nil}})
	}
	v1 := w.file("v1.yaml", fmt.Sprintf(text, topic, 0))
	if o := w.code(0, "check", v1, "--require-merge-check", "--timeout", "3m"); !strings.Contains(o.stderr, "merge check: passed (1,502 records of the topic") {
		t.Error(o.stderr)
	}
	w.ok("test", v1)
	w.ok("test", v1, "--dsn", w.dsn)
	w.planHolds("v1.yaml", fmt.Sprintf(text, topic, 0), n+2, "orders__v1")
	w.warnsOfMovedKeys(upsert)

	// In live the same again, under the eyes of verify.
	kafkatest.ProduceMany(t, w.brokers, 100, func(i int) *kgo.Record { return order(topic, i, 100_000+i) }, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	w.caughtUp("orders")
	w.equal("orders")
	want := "id\tamount\tts\ttwice\no7\t100007\t2026-01-01 00:00:07+00\t200014\n"
	if !upsert {
		want += "o7\t7\t"
	}
	if out := w.ok("query", "orders", "id=o7"); !strings.Contains(out, "o7\t100007\t2026-01-01 00:00:07+00\t200014\n") || (out == want) != upsert {
		t.Errorf("%s, want %s", out, want)
	}

	// A version that leaves ten records out.
	w.ok("deploy", w.file("v2.yaml", fmt.Sprintf(text, topic, 10)))
	var d struct {
		OnlyA   int `json:"only_a"`
		OnlyB   int `json:"only_b"`
		Changed int `json:"changed"`
		Same    int `json:"same"`
	}
	w.into(&d, "diff", "orders")
	if upsert {
		changed = 0 // the latest of those keys are others
	}
	if d.OnlyA != changed || d.OnlyB != 0 || d.Changed != 0 || d.Same != served+100*(changed/10)-changed {
		t.Errorf("%+v", d)
	}
	w.ok("promote", "orders")
	w.equal("orders")
	w.ok("rollback", "orders")
	w.equal("orders")
	if !upsert {
		w.retriedRows(topic, text)
	}
}

// warnsOfMovedKeys looks for o7 and o8, whose tombstones are in another partition than their rows.
func (w *world) warnsOfMovedKeys(upsert bool) {
	var st struct {
		Versions []struct {
			Warnings []string `json:"warnings"`
		} `json:"versions"`
	}
	w.into(&st, "status", "orders")
	got := strings.Join(st.Versions[0].Warnings, "\n")
	if strings.HasPrefix(got, "2 keys have records in more than one partition; the time of the record decides which of them is the newest") != upsert {
		w.t.Errorf("warnings: %q", got)
	}
}

// retriedRows looks at the dead letters of an append again.
func (w *world) retriedRows(topic, text string) {
	t := w.t
	var letters []struct {
		Record string `json:"record"`
		Reason string `json:"reason"`
	}
	w.into(&letters, "deadletter", "list", "orders")
	if len(letters) != 2 || letters[0].Reason != "wrong_type" || letters[1].Reason != "no_value" {
		t.Fatalf("%+v", letters)
	}
	w.ok("deadletter", "show", "orders", letters[1].Record)
	// A stamp that is no time fails again, whatever the file: it is read from the log.
	kafkatest.ProduceAt(t, w.brokers, topic, 0, 1_700_000_000_000_000, nil, []byte(`{"id":"y","amount":1}`))
	kafkatest.Until(t, "the record with that stamp is a dead letter", func() bool {
		w.into(&letters, "deadletter", "list", "orders")
		return len(letters) == 3
	})
	fixed := strings.NewReplacer("amount: bigint", "amount: text", "amount >= %d", "amount >= '%d'", "amount * 2", "amount || '2'", "amount: 500", "amount: '500'", "twice: 1000", "twice: '5002'").Replace(text)
	again := w.code(5, "deadletter", "retry", "orders", "--file", w.file("fixed.yaml", fmt.Sprintf(fixed, topic, 0)), "-o", "json")
	var r struct{ Passes, Fails, Unknown int }
	if err := json.Unmarshal([]byte(again.stdout), &r); err != nil || r.Passes != 1 || r.Fails != 2 || r.Unknown != 0 {
		t.Errorf("%v %s", err, again.stdout)
	}
}
