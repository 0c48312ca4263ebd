package speedlayer

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// latestOf keeps the newest v of each record key.
const latestOf = `SELECT decode(_key) AS id, v FROM source`

func keyed(names ...string) rigOption { return func(s *job.Spec) { s.Serve.Key = names } }

func orderedBy(by string) rigOption { return func(s *job.Spec) { s.Serve.OrderBy = by } }

// change is one record: a key, and a value or a tombstone.
type change struct {
	key   string
	value string // empty: a tombstone
	at    int64  // milliseconds; 0: when it is produced
	on    int32
}

func (r *rig) change(changes ...change) {
	r.t.Helper()
	records := make([]*kgo.Record, len(changes))
	for i, c := range changes {
		records[i] = &kgo.Record{Topic: r.topic, Partition: c.on, Key: []byte(c.key)}
		if c.value != "" {
			records[i].Value = []byte(c.value)
		}
		if c.at != 0 {
			records[i].Timestamp = time.UnixMilli(c.at)
		}
	}
	kafkatest.ProduceRecords(r.t, r.brokers, records)
}

// sizes runs f with live batches, and with segments, of these many records: of one each, of some and of all. make soak runs more.
func sizes(t *testing.T, partitions int32, sql string, f func(*rig), want []string, options ...rigOption) {
	soak := os.Getenv("KAPPACTL_SOAK") != ""
	for _, size := range []int{1, 2, 3, 100} {
		t.Run(fmt.Sprintf("live/%d", size), func(t *testing.T) {
			if size == 3 && !soak {
				return
			}
			t.Parallel()
			r := newRig(t, kafkatest.Fake(t), partitions, sql, options...)
			f(r)
			r.startLive()
			r.agent("a", func(e *Engine) { e.most = size })
			r.caughtUp()
			if diff := cmp.Diff(want, r.served()); diff != "" {
				t.Error(diff)
			}
		})
		t.Run(fmt.Sprintf("lambda/%d", size), func(t *testing.T) {
			if size > 2 || size == 1 && !soak {
				return // commits of more records leave too few epochs
			}
			t.Parallel()
			r := newRig(t, kafkatest.Fake(t), partitions, sql, append(options, ofLambda)...)
			f(r)
			r.startLive()
			r.layers(size, want)
		})
		t.Run(fmt.Sprintf("replay/%d", size), func(t *testing.T) {
			if size == 2 || size == 100 && !soak {
				return // segments of 1 and 3 show the same; one segment of all is in most other tests
			}
			t.Parallel()
			r := newRig(t, kafkatest.Fake(t), partitions, sql, options...)
			f(r)
			r.startReplay(int64(size))
			r.agent("a", nil)
			r.build()
			if diff := cmp.Diff(want, r.served()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUpdatesAndDeletesOfAKeyApplyInTheirOrder(t *testing.T) { // D09
	t.Parallel()
	sizes(t, 1, latestOf, func(r *rig) {
		r.change(change{key: "a", value: `{"v":1}`}, change{key: "a"}, change{key: "a", value: `{"v":2}`},
			change{key: "b", value: `{"v":1}`}, change{key: "b", value: `{"v":2}`}, change{key: "b"})
	}, []string{"(a,2)"}, keyed("id"))
}

func TestAKeySeveralTimesInABatchIsOneRowWithItsLatestValue(t *testing.T) { // D10
	t.Parallel()
	sizes(t, 1, latestOf, func(r *rig) {
		r.change(change{key: "k", value: `{"v":1}`}, change{key: "k", value: `{"v":2}`}, change{key: "k", value: `{"v":3}`})
	}, []string{"(k,3)"}, keyed("id"))
	sizes(t, 1, `SELECT id, i FROM (SELECT decode(_key) AS id, unnest([v, v + 1]) AS i FROM source)`, func(r *rig) {
		r.change(change{key: "k", value: `{"v":10}`}, change{key: "k", value: `{"v":3}`}, change{key: "l", value: `{"v":7}`})
	}, []string{"(k,4)", "(l,8)"}, keyed("id"))
}

func TestTheNewerRecordWinsWhicheverComesFirst(t *testing.T) {
	t.Parallel()
	// By the record's time: keys move between partitions when partitions are added.
	sizes(t, 2, latestOf, func(r *rig) {
		r.change(change{key: "a", value: `{"v":2}`, at: 2000, on: 0}, change{key: "a", value: `{"v":1}`, at: 1000, on: 1},
			change{key: "b", value: `{"v":1}`, at: 1000, on: 1}, change{key: "b", at: 3000, on: 0}, change{key: "b", value: `{"v":2}`, at: 2000, on: 1},
			change{key: "c", at: 1000, on: 0}, change{key: "c", value: `{"v":5}`, at: 1500, on: 1})
	}, []string{"(a,2)", "(c,5)"}, keyed("id"))
	// By a declared column.
	sizes(t, 2, `SELECT decode(_key) AS id, k, v FROM source`, func(r *rig) {
		r.change(change{key: "a", value: `{"k":"new","v":9}`, at: 1000, on: 0}, change{key: "a", value: `{"k":"old","v":8}`, at: 2000, on: 1},
			change{key: "b", value: `{"k":"first","v":1}`, at: 2000, on: 0}, change{key: "b", value: `{"k":"second","v":1}`, at: 1000, on: 0})
	}, []string{"(a,new,9)", "(b,second,1)"}, keyed("id"), orderedBy("v"))
}

func TestANullKeyIsADeadLetterAndAnEmptyOneIsAKey(t *testing.T) { // D11
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, latestOf, keyed("id"))
	put := func() {
		kafkatest.Produce(t, r.brokers, r.topic, 0, `{"v":1}`)
		r.change(change{key: "", value: `{"v":2}`}, change{key: "a", value: `{"v":3}`})
	}
	put()
	r.startReplay(0)
	r.agent("a", nil)
	r.build()
	put()
	r.caughtUp()
	if diff := cmp.Diff([]string{`("",2)`, "(a,3)"}, r.served()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"(0,null_key)", "(3,null_key)"}, lines(t, r.pool, `SELECT "offset", reason FROM kappactl.dead_letter ORDER BY 1`)); diff != "" {
		t.Error(diff)
	}
}

func TestAnOrderThatIsNullIsADeadLetter(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, latestOf, keyed("id"), orderedBy("v"))
	r.change(change{key: "a", value: `{"v":1}`}, change{key: "a", value: `{}`})
	r.startLive()
	r.agent("a", nil)
	r.caughtUp()
	if diff := cmp.Diff([]string{"(1,null_order)"}, lines(t, r.pool, `SELECT "offset", reason FROM kappactl.dead_letter ORDER BY 1`)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"(a,1)"}, r.served()); diff != "" {
		t.Error(diff)
	}
}

func TestTombstonesPassTheFiltersOfAnUpsertOnly(t *testing.T) {
	t.Parallel()
	sizes(t, 1, `SELECT id, v FROM (SELECT decode(_key) AS id, v FROM source WHERE v > 0) WHERE v < 100`, func(r *rig) {
		r.change(change{key: "a", value: `{"v":1}`}, change{key: "a"}, change{key: "b", value: `{"v":5}`}, change{key: "b", value: `{"v":500}`},
			change{key: "c", value: `{"v":-1}`})
	}, []string{"(b,5)"}, keyed("id"))
	r := newRig(t, kafkatest.Fake(t), 1, latestOf)
	r.change(change{key: "a", value: `{"v":1}`}, change{key: "a"})
	r.startLive()
	r.agent("a", nil)
	r.caughtUp()
	if diff := cmp.Diff([]string{"(1,no_value)"}, lines(t, r.pool, `SELECT "offset", reason FROM kappactl.dead_letter`)); diff != "" {
		t.Error(diff)
	}
}

// TestATombstoneDeletesWhatPrecedesItWhateverTheOrderIs: the declared order may run ahead of the records' own times, or be no
// time at all. A deleted key comes back with a later record of an order that is not less.
func TestATombstoneDeletesWhatPrecedesItWhateverTheOrderIs(t *testing.T) {
	t.Parallel()
	for name, as := range map[string]struct {
		sql  string
		show func(int) string
	}{
		"a number":               {"v", strconv.Itoa},
		"a text":                 {"format('{:09d}', v)", func(v int) string { return fmt.Sprintf("%09d", v) }},
		"a time that runs ahead": {"TIMESTAMPTZ '2090-01-01 00:00:00+00' + to_seconds(v)", func(v int) string { return fmt.Sprintf(`"2090-01-01 00:00:%02d+00"`, v) }},
		"a day that runs ahead":  {"DATE '2090-01-01' + CAST(v AS INTEGER)", func(v int) string { return fmt.Sprintf("2090-01-%02d", 1+v) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want []string
			for _, w := range []string{"c6", "d9", "e1", "g2"} {
				v := int(w[1] - '0')
				want = append(want, fmt.Sprintf("(%s,%d,%s)", w[:1], v, as.show(v)))
			}
			sizes(t, 2, "SELECT decode(_key) AS id, v, "+as.sql+" AS o FROM source", func(r *rig) {
				r.change(change{key: "a", value: `{"v":5}`}, change{key: "a"},
					change{key: "b", value: `{"v":5}`}, change{key: "b"}, change{key: "b", value: `{"v":4}`}, // an older one that comes late
					change{key: "c", value: `{"v":5}`}, change{key: "c"}, change{key: "c", value: `{"v":6}`},
					change{key: "d", value: `{"v":1}`}, change{key: "d", value: `{"v":9}`}, change{key: "d"}, change{key: "d", value: `{"v":9}`},
					change{key: "e"}, change{key: "e", value: `{"v":1}`},
					// The key moved to another partition: the records' times decide.
					change{key: "f", value: `{"v":9}`, at: 1000, on: 0}, change{key: "f", at: 2000, on: 1},
					change{key: "g", at: 1000, on: 1}, change{key: "g", value: `{"v":2}`, at: 2000, on: 0},
					change{key: "h", value: `{"v":9}`, at: 3000, on: 0}, change{key: "h", at: 1000, on: 0}, change{key: "h", at: 500, on: 1})
			}, want, keyed("id"), orderedBy("o"))
		})
	}
}

// TestATombstoneDeletesUnderUnnest: its declared columns are NULL, and unnest of NULL has no row.
func TestATombstoneDeletesUnderUnnest(t *testing.T) {
	t.Parallel()
	changes := func(r *rig) {
		r.change(change{key: "a", value: `{"k":"red","v":1}`}, change{key: "b", value: `{"k":"blue","v":1}`}, change{key: "a"},
			change{key: "c"}, change{key: "c", value: `{"k":"green","v":1}`})
	}
	sizes(t, 1, `SELECT id, tag FROM (SELECT decode(_key) AS id, unnest(string_split(k, ',')) AS tag FROM source)`, changes,
		[]string{"(b,blue)", "(c,green)"}, keyed("id"))
	sizes(t, 1, `SELECT decode(_key) AS id, unnest(string_split(k, ',')) AS tag, unnest([v]) AS v FROM source WHERE v > 0`, changes,
		[]string{"(b,blue,1)", "(c,green,1)"}, keyed("id"))
	// The key itself comes from the list: a tombstone deletes each of its rows.
	sizes(t, 1, `SELECT unnest(string_split(decode(_key), '+')) AS id, v FROM source`, func(r *rig) {
		r.change(change{key: "a+b", value: `{"v":1}`}, change{key: "c", value: `{"v":2}`}, change{key: "a+b"})
	}, []string{"(c,2)"}, keyed("id"))
}

func TestAppendedRowsAreThereOnceEach(t *testing.T) {
	t.Parallel()
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprintf("(k,%d)", i%3))
	}
	slices.Sort(want)
	sizes(t, 2, `SELECT k, v FROM source WHERE v >= 0`, func(r *rig) {
		for i := range 7 {
			kafkatest.Produce(t, r.brokers, r.topic, int32(i%2), fmt.Sprintf(`{"k":"k","v":%d}`, i%3), `{"k":"k","v":-1}`)
		}
	}, want)
	sizes(t, 1, `SELECT k, unnest([v, v, v + 1]) AS i FROM source`, func(r *rig) {
		kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"a","v":1}`, `{"k":"b","v":2}`)
	}, []string{"(a,1)", "(a,1)", "(a,2)", "(b,2)", "(b,2)", "(b,3)"})
}

// TestAppendedRowsAreExactWhenConnectionsDie is the append's part of TestExactlyOnceWhenConnectionsDieAtEveryStep.
func TestRowsOfARecordAreToldApartWhateverMakesThem(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"regexp_split_to_table(k, ' ')", "unlist(string_split(k, ' '))", "unnest(string_split(k, ' '))"} {
		sizes(t, 1, "SELECT v, "+call+" AS w FROM source", func(r *rig) {
			r.change(change{key: "x", value: `{"k":"a","v":1}`}, change{key: "x", value: `{"k":"c d d","v":2}`})
		}, []string{"(1,a)", "(2,c)", "(2,d)", "(2,d)"})
	}
}

// TestARecordThatBreaksTheEngineIsSetAside: an assertion of the engine fails over it, in every batch that it is in.
func TestARecordThatBreaksTheEngineIsSetAside(t *testing.T) {
	t.Parallel()
	const broken = `SELECT v, CASE WHEN k = 'era' THEN date_sub('era', make_timestamptz(v), TIMESTAMPTZ '2022-01-01 00:00:00+00') END AS e FROM source`
	r := newRig(t, kafkatest.Fake(t), 2, broken)
	r.change(change{key: "a", value: `{"k":"x","v":1}`}, change{key: "b", value: `{"k":"era","v":1585441800000000}`},
		change{key: "c", value: `{"k":"x","v":2}`, on: 1})
	r.startLive()
	r.agent("a", nil)
	r.caughtUp()
	if diff := cmp.Diff([]string{"(1,)", "(2,)"}, r.served()); diff != "" {
		t.Error(diff)
	}
	letters := lines(t, r.pool, `SELECT "offset", reason, detail LIKE '%INTERNAL Error%' AND detail NOT LIKE '%Stack%' FROM kappactl.dead_letter`)
	if diff := cmp.Diff([]string{"(1,query_error,t)"}, letters); diff != "" {
		t.Error(diff)
	}
}

func TestAppendedRowsAreExactWhenConnectionsDie(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 2, `SELECT k, v FROM source`)
	for p := range int32(2) {
		r.produce(p, 200, 300)
	}
	r.startReplay(60)
	passed := 0
	r.agent("a", func(e *Engine) {
		e.at = func(at string) {
			if at == "live.upserted" {
				if passed++; passed%3 == 1 && passed < 20 {
					r.killBackends()
				}
			}
		}
	})
	r.build()
	for i := range 15 {
		r.produce(int32(i%2), 1000+i*20, 20)
		r.caughtUp()
	}
	if got := lines(t, r.pool, `SELECT count(*), count(DISTINCT (_partition, _offset, _n)), sum(v) = (SELECT sum(v) FROM public.sums__v1) AS all FROM public.sums__v1`)[0]; got != "(900,900,t)" {
		t.Errorf("rows, places: %s", got)
	}
}
