package kafkatest

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Produce appends values to a partition, in order.
func Produce(t testing.TB, brokers []string, topic string, partition int32, values ...string) {
	t.Helper()
	records := make([]*kgo.Record, len(values))
	for i, v := range values {
		records[i] = &kgo.Record{Topic: topic, Partition: partition, Value: []byte(v)}
	}
	ProduceRecords(t, brokers, records)
}

// ProduceKeyed appends pairs of key and value to a partition. A nil value is a tombstone.
func ProduceKeyed(t testing.TB, brokers []string, topic string, partition int32, pairs ...[2][]byte) {
	t.Helper()
	records := make([]*kgo.Record, len(pairs))
	for i, p := range pairs {
		records[i] = &kgo.Record{Topic: topic, Partition: partition, Key: p[0], Value: p[1]}
	}
	ProduceRecords(t, brokers, records)
}

// ProduceRecords appends records to the partitions they name, with their keys, headers and timestamps. opts go to the
// client: compression, batch size.
func ProduceRecords(t testing.TB, brokers []string, records []*kgo.Record, opts ...kgo.Opt) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := Client(t, brokers, opts...).ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatalf("produce %d records: %v", len(records), err)
	}
}

// ProduceMany appends the n records that at makes, pipelined; for volumes that should not be held in memory.
func ProduceMany(t testing.TB, brokers []string, n int, at func(i int) *kgo.Record, opts ...kgo.Opt) {
	t.Helper()
	cl := Client(t, brokers, append([]kgo.Opt{kgo.MaxBufferedRecords(100_000)}, opts...)...)
	var pending firstError
	for i := range n {
		cl.Produce(t.Context(), at(i), pending.note)
	}
	if err := cl.Flush(t.Context()); err != nil {
		t.Fatalf("produce %d records: %v", n, err)
	}
	if pending.err != nil {
		t.Fatalf("produce %d records: %v", n, pending.err)
	}
}

// firstError keeps the first error of the promises of one client, which run one after the other.
type firstError struct{ err error }

func (f *firstError) note(_ *kgo.Record, err error) {
	if f.err == nil {
		f.err = err
	}
}
