package kafkatest

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// ProduceAt appends one record whose timestamp is any number: clients that hold times in nanoseconds cannot send those
// of producers that stamp microseconds.
func ProduceAt(t testing.TB, brokers []string, topic string, partition int32, stamp int64, key, value []byte) {
	t.Helper()
	rec := kmsg.Record{Key: key, Value: value}
	rec.Length = int32(len(rec.AppendTo(nil)) - 1) // without the length itself, which takes a byte while it is 0
	batch := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, FirstTimestamp: stamp, MaxTimestamp: stamp,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: 1, Records: rec.AppendTo(nil),
	}
	const lengthEnds, crcBegins, crcEnds = 12, 17, 21
	raw := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-lengthEnds))
	binary.BigEndian.PutUint32(raw[crcBegins:], crc32.Checksum(raw[crcEnds:], crc32.MakeTable(crc32.Castagnoli)))

	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = partition, raw
	in := kmsg.NewProduceRequestTopic()
	in.Topic, in.Partitions = topic, append(in.Partitions, part)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = -1, int32(patience.Milliseconds()), append(req.Topics, in)
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(req.Key(), 12) // the last that names topics
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	resp, err := req.RequestWith(ctx, Client(t, brokers, kgo.MaxVersions(versions)))
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		t.Fatalf("produce a record at %d: %v", stamp, err)
	}
}
