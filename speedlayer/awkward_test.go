package speedlayer

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// Where the field reports about data have their tests:
//
//	D01 here, fault_test.go, internal/format/convert_test.go      D09 rows_test.go
//	D03 here, internal/format/{convert,decoder}_test.go           D10 rows_test.go, landing_test.go
//	D04 here, internal/{format/convert,cli/query}_test.go         D11 here, rows_test.go
//	D06 as D04, and internal/format/decoder_test.go               D13 here, fault_test.go
//	D07 here, internal/format/decoder_test.go                     D14 internal/kafka/large_test.go, partition_test.go, reprocess/verdict_test.go
//	D15 here, internal/format/decoder_test.go                     D16 here, internal/kafka/stamp_test.go, internal/format/{convert,decoder}_test.go

// Each record of awkward has a k of its own, so that every shape of query gives the same rows.
const (
	awkwardHeaders = `array_to_string(list_transform(_headers, lambda h: h.key || '=' || coalesce(hex(h.value), 'NULL')), ' ')`
	awkwardRows    = `SELECT k, v, epoch_ms(_timestamp) AS at, hex(_key) AS key, ` + awkwardHeaders + ` AS headers FROM source`
	awkwardTotals  = `SELECT k, sum(v) AS v, min(epoch_ms(_timestamp)) AS at, max(hex(_key)) AS key, max(` + awkwardHeaders + `) AS headers FROM source GROUP BY k`
)

// awkward are the records of field reports D01, D03, D04, D06, D07, D13, D15 and D16, the rows that they give, and the reasons why
// some give none.
func awkward(topic string) (records []*kgo.Record, rows, letters []string) {
	at := time.UnixMilli(1000)
	add := func(value, row, reason string, change func(*kgo.Record)) {
		rec := &kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte(value), Timestamp: at}
		if change != nil {
			change(rec)
		}
		if row != "" {
			rows = append(rows, row)
		} else {
			letters = append(letters, fmt.Sprintf("(%d,%s)", len(records), reason))
		}
		records = append(records, rec)
	}
	key := func(b string) func(*kgo.Record) { return func(r *kgo.Record) { r.Key = []byte(b) } }
	stamp := func(ms int64) func(*kgo.Record) { return func(r *kgo.Record) { r.Timestamp = time.UnixMilli(ms) } }
	headers := func(h ...kgo.RecordHeader) func(*kgo.Record) { return func(r *kgo.Record) { r.Headers = h } }

	add(`{"k":"a-first","v":1}`, `(a-first,1,1000,6B,"")`, "", nil)
	add(`{"k":"x\u0000y","v":1}`, "", "nul", nil) // D01
	add(`{"k":"d01-key","v":1}`, `(d01-key,1,1000,610062,"")`, "", key("a\x00b"))
	add("{\"k\":\"a\xffb\",\"v\":1}", "", "invalid_utf8", nil) // D03
	add(`{"k":"d03-fe","v":1}`, `(d03-fe,1,1000,FE,"")`, "", key("\xfe"))
	add(`{"k":"d03-ff","v":1}`, `(d03-ff,1,1000,FF,"")`, "", key("\xff"))
	add(`{"k":"d04","v":9007199254740993}`, `(d04,9007199254740993,1000,6B,"")`, "", nil) // D04
	add(`{"k":"d04","v":18446744073709551615}`, "", "out_of_range", nil)
	add(`{"k":"d06","v":NaN}`, "", "not_json", nil) // D06
	add(`{"k":"d06","v":"NaN"}`, "", "wrong_type", nil)
	add(`{"k":"d06","v":1e400}`, "", "out_of_range", nil)
	add(`{"k":"no","k":"d07","K":"other","v":1,"v":2}`, `(d07,2,1000,6B,"")`, "", nil) // D07
	add(`{"k":"d13","v":"abc"}`, "", "wrong_type", nil)                                // D13
	add(`{"k":"d15-name","v":1}`, "", "invalid_utf8", headers(kgo.RecordHeader{Key: "\xff"}))
	add(`{"k":"d15-values","v":1}`, `(d15-values,1,1000,6B,"h=NULL h= h=61 b=FE")`, "", headers( // D15
		kgo.RecordHeader{Key: "h"}, kgo.RecordHeader{Key: "h", Value: []byte{}}, kgo.RecordHeader{Key: "h", Value: []byte("a")}, kgo.RecordHeader{Key: "b", Value: []byte{0xfe}}))
	add(`{"k":"d16-micros","v":1}`, "", "out_of_range", stamp(1_700_000_000_000_000))
	add(`{"k":"d16-none","v":1}`, `(d16-none,1,,6B,"")`, "", stamp(-1)) // D16
	add(`{"k":"d16-seconds","v":1}`, `(d16-seconds,1,1700000000,6B,"")`, "", stamp(1_700_000_000))
	add(`{"k":"d16-zero","v":1}`, `(d16-zero,1,0,6B,"")`, "", stamp(0))
	add(fmt.Sprintf(`{"k":"z-last","v":%d}`, int64(math.MaxInt64)), `(z-last,9223372036854775807,1000,6B,"")`, "", nil)
	return records, rows, letters
}

// TestAwkwardRecordsGiveTheSameInEveryShapeAndInLiveAndReplay: totals, appended rows and the latest of a key.
func TestAwkwardRecordsGiveTheSameInEveryShapeAndInLiveAndReplay(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string]struct {
		sql     string
		options []rigOption
	}{
		"rollup": {awkwardTotals, nil}, "append": {awkwardRows, nil}, "upsert": {awkwardRows, []rigOption{keyed("k")}},
	} {
		for _, live := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/live=%t", name, live), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, kafkatest.Fake(t), 1, shape.sql, shape.options...)
				records, rows, letters := awkward(r.topic)
				for _, rec := range records { // one by one: a batch's times are deltas of its first
					if at := rec.Timestamp.UnixMilli(); at > 9e12 { // later than the client can send
						kafkatest.ProduceAt(t, r.brokers, r.topic, 0, at, rec.Key, rec.Value)
						continue
					}
					kafkatest.ProduceRecords(t, r.brokers, []*kgo.Record{rec})
				}
				if live {
					r.startLive()
					r.agent("a", nil)
				} else {
					r.startReplay(7)
					r.agent("a", nil)
					r.build()
				}
				r.caughtUp()
				if diff := cmp.Diff(rows, r.served()); diff != "" {
					t.Errorf("served (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(letters, lines(t, r.pool, `SELECT "offset", reason FROM kappactl.dead_letter ORDER BY "offset"`)); diff != "" {
					t.Errorf("dead letters (-want +got):\n%s", diff)
				}
				if got := lines(t, r.pool, `SELECT count(*) FROM kappactl.position WHERE next = `+fmt.Sprint(len(records)))[0]; got != "(1)" {
					t.Errorf("the position does not stand at %d", len(records))
				}
			})
		}
	}
}

// TestKeysOfAnUpsertAreBytesOrTexts: D01, D03 and D11 for a key that is the record's.
func TestKeysOfAnUpsertAreBytesOrTexts(t *testing.T) {
	t.Parallel()
	put := func(r *rig) {
		for i, key := range []string{"\xff", "\xfe", "a\x00b", "", "a", "\xff"} {
			r.change(change{key: key, value: fmt.Sprintf(`{"v":%d}`, i)})
		}
		r.change(change{key: "\xfe"})
		kafkatest.Produce(t, r.brokers, r.topic, 0, `{"v":9}`) // no key
	}
	for name, c := range map[string]struct {
		sql           string
		rows, letters []string
	}{
		"bytes": {`SELECT _key AS id, v FROM source`, []string{`("\\x",3)`, `("\\x61",4)`, `("\\x610062",2)`, `("\\xff",5)`}, []string{"(7,null_key)"}},
		"texts": {latestOf, []string{`("",3)`, `(a,4)`}, []string{"(0,query_error)", "(1,query_error)", "(2,query_error)", "(5,query_error)", "(6,query_error)", "(7,null_key)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, kafkatest.Fake(t), 1, c.sql, keyed("id"))
			put(r)
			r.startReplay(3)
			r.agent("a", nil)
			r.build()
			r.caughtUp()
			if diff := cmp.Diff(c.rows, r.served()); diff != "" {
				t.Errorf("served (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.letters, lines(t, r.pool, `SELECT "offset", reason FROM kappactl.dead_letter ORDER BY "offset"`)); diff != "" {
				t.Errorf("dead letters (-want +got):\n%s", diff)
			}
		})
	}
}
