package kafka

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// D14: a batch over MaxPartitionBytes and MaxBytes passes.
func TestLargeRecordPassesSmallLimits(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		parts := newTopic(t, brokers, 2, map[string]string{"max.message.bytes": "12000000"})
		large := strings.Repeat("x", 5<<20)
		opts := []kgo.Opt{kgo.ProducerBatchMaxBytes(10 << 20), kgo.ProducerBatchCompression(kgo.NoCompression())}
		kafkatest.Produce(t, brokers, parts[1].Topic, 1, strings.Fields("0 1 2 3 4 5 6")...)
		kafkatest.ProduceRecords(t, brokers, []*kgo.Record{
			{Topic: parts[0].Topic, Partition: 0, Value: []byte(large)}, {Topic: parts[1].Topic, Partition: 1, Value: []byte(large)},
		}, opts...)
		kafkatest.Produce(t, brokers, parts[1].Topic, 1, "8")
		r := newReader(newFetcher(t, brokers, FetchConfig{MaxPartitionBytes: 512, MaxBytes: 1024}), Cursor{Partition: parts[0]}, Cursor{Partition: parts[1]})
		r.until(t, "everything has come", func() bool { return len(r.values[parts[0]]) == 1 && len(r.values[parts[1]]) == 9 })
		if r.values[parts[0]][0] != large || r.values[parts[1]][7] != large {
			t.Error("the large record changed on its way")
		}
		if len(r.errs) > 0 {
			t.Errorf("errors: %v", r.errs)
		}
	})
}

// D14: what the client can never read ends as a final error that names the offset, and the neighbours go on.
func TestRecordOverTheReadLimitIsTooLarge(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		parts := newTopic(t, brokers, 2, nil)
		kafkatest.Produce(t, brokers, parts[0].Topic, 0, strings.Fields("0 1 2 3 4 5 6")...)
		kafkatest.ProduceRecords(t, brokers, []*kgo.Record{{Topic: parts[0].Topic, Value: []byte(strings.Repeat("x", 130_000))}},
			kgo.ProducerBatchCompression(kgo.NoCompression()))
		kafkatest.Produce(t, brokers, parts[1].Topic, 1, "a", "b")
		cl, err := NewClient(Config{Brokers: brokers}, kgo.FetchMaxBytes(512), kgo.BrokerMaxReadBytes(20_000))
		if err != nil {
			t.Fatal(err)
		}
		f := NewFetcher(cl, FetchConfig{})
		t.Cleanup(func() { f.Close(); cl.Close() })
		r := newReader(f, Cursor{Partition: parts[0]}, Cursor{Partition: parts[1]})
		got := final[*TooLargeError](t, r)
		if got.Partition != parts[0] || got.Offset != 7 || got.Limit != 20_000 {
			t.Errorf("got %+v", got)
		}
		kafkatest.Produce(t, brokers, parts[1].Topic, 1, "c")
		r.until(t, "the neighbour goes on", func() bool { return len(r.values[parts[1]]) == 3 })
	})
}
