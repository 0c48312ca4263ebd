package kafkatest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestMain(m *testing.M) { Main(m) }

func TestTransactionsShowInTheOffsets(t *testing.T) {
	Each(t, func(t *testing.T, brokers []string) {
		topic := Name("txn")
		Topic(t, brokers, topic, 1, nil)
		Committed(t, brokers, topic, 0, "a")
		AwaitStable(t, brokers, topic, 0, 2)
		open := Begin(t, brokers)
		open.Produce(t, &kgo.Record{Topic: topic, Value: []byte("b")})
		Produce(t, brokers, topic, 0, "c", "d")
		end, stable := Ends(t, brokers, topic, 0)
		if end != 5 || stable != 2 {
			t.Errorf("with a transaction open: end %d, last stable %d; want 5 and 2", end, stable)
		}
		open.End(t, kgo.TryAbort)
		AwaitStable(t, brokers, topic, 0, 6)
	})
}

func TestRecordsKeepKeysAndTimestamps(t *testing.T) {
	Each(t, func(t *testing.T, brokers []string) {
		topic := Name("keyed")
		Topic(t, brokers, topic, 2, nil)
		at := time.UnixMilli(1_700_000_000_000)
		ProduceRecords(t, brokers, []*kgo.Record{{Topic: topic, Partition: 1, Key: []byte("k"), Value: []byte("v"), Timestamp: at}})
		ProduceKeyed(t, brokers, topic, 1, [2][]byte{[]byte("k"), nil})
		cl := Client(t, brokers, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {1: kgo.NewOffset().At(0)}}))
		var got []string
		for len(got) < 2 {
			cl.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
				got = append(got, fmt.Sprintf("%s=%q tombstone=%t old=%t", r.Key, r.Value, r.Value == nil, r.Timestamp.Equal(at)))
			})
		}
		want := []string{`k="v" tombstone=false old=true`, `k="" tombstone=true old=false`}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRestartedBrokerKeepsItsRecordsAndItsPort(t *testing.T) {
	t.Parallel()
	b := StartReal(t)
	before := b.Brokers[0]
	Topic(t, b.Brokers, "kept", 1, nil)
	Produce(t, b.Brokers, "kept", 0, "a", "b")
	b.Restart(t)
	if b.Brokers[0] != before {
		t.Errorf("the broker moved from %s to %s", before, b.Brokers[0])
	}
	awaitLeaders(t, b.Brokers, "kept", 1)
	if end, _ := Ends(t, b.Brokers, "kept", 0); end != 2 {
		t.Errorf("end offset %d after kill -9, want 2", end)
	}
}
