package kafka

import (
	"bytes"
	"hash/crc32"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// batchOf is a record batch of values from offset first on.
func batchOf(first int64, values ...string) []byte {
	var records []byte
	for i, v := range values {
		r := kmsg.NewRecord()
		r.OffsetDelta, r.Value = int32(i), []byte(v)
		r.Length = int32(len(r.AppendTo(nil)) - 1)
		records = r.AppendTo(records)
	}
	b := kmsg.NewRecordBatch()
	b.FirstOffset, b.Magic, b.LastOffsetDelta, b.NumRecords, b.Records = first, 2, int32(len(values)-1), int32(len(values)), records
	b.Length = int32(len(b.AppendTo(nil)) - 12)
	b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b.AppendTo(nil)
}

// answerWith answers for one partition with what lies from the offset asked for on, of batches that begin at these offsets.
func answerWith(batches map[int64][]byte, end int64) func(*kmsg.FetchRequest, *kmsg.FetchResponse) {
	return func(req *kmsg.FetchRequest, resp *kmsg.FetchResponse) {
		empty(req, resp)
		p := &resp.Topics[0].Partitions[0]
		p.HighWatermark, p.LastStableOffset = end, end
		for at := req.Topics[0].Partitions[0].FetchOffset; at < end; at++ {
			p.RecordBatches = append(p.RecordBatches, batches[at]...)
		}
	}
}

// A damaged batch stops its partition; the batches before it in the same answer are delivered.
func TestBatchesBeforeADamagedOneAreDelivered(t *testing.T) {
	c := kafkatest.FakeCluster(t)
	p := newTopic(t, c.ListenAddrs(), 1, nil)[0]
	damaged := batchOf(2, "c", "d")
	damaged[len(damaged)-1] ^= 1
	answerFetches(c, answerWith(map[int64][]byte{0: batchOf(0, "a", "b"), 2: damaged, 4: batchOf(4, "e")}, 5))
	r := newReader(newFetcher(t, c.ListenAddrs(), FetchConfig{}), Cursor{Partition: p})
	r.until(t, "the damage is met", func() bool { return len(r.errs) > 0 })
	if diff := cmp.Diff([]string{"a", "b"}, r.values[p]); diff != "" || r.cursors[0].Next != 2 {
		t.Errorf("next is %d: %s", r.cursors[0].Next, diff)
	}
}

// message is a message of the formats before record batches, as magic 0 or 1.
func message(magic int8, offset int64, attributes int8, value []byte) []byte {
	if magic == 0 {
		m := kmsg.MessageV0{Offset: offset, Magic: magic, Attributes: attributes, Value: value}
		m.MessageSize = int32(len(m.AppendTo(nil)) - 12)
		m.CRC = int32(crc32.ChecksumIEEE(m.AppendTo(nil)[16:]))
		return m.AppendTo(nil)
	}
	m := kmsg.MessageV1{Offset: offset, Magic: magic, Attributes: attributes, Timestamp: 1_700_000_000_000 + offset, Value: value}
	m.MessageSize = int32(len(m.AppendTo(nil)) - 12)
	m.CRC = int32(crc32.ChecksumIEEE(m.AppendTo(nil)[16:]))
	return m.AppendTo(nil)
}

// A topic may still hold what producers wrote before Kafka 0.11: messages without headers, wrapped when compressed, and of the
// oldest ones without a time.
func TestMessagesOfOldTopics(t *testing.T) {
	c := kafkatest.FakeCluster(t)
	p := newTopic(t, c.ListenAddrs(), 1, nil)[0]
	gzip := func(inner ...[]byte) []byte {
		var all []byte
		for _, m := range inner {
			all = append(all, m...)
		}
		compressor, err := kgo.DefaultCompressor(kgo.GzipCompression())
		if err != nil {
			t.Fatal(err)
		}
		out, _ := compressor.Compress(new(bytes.Buffer), all)
		return append([]byte(nil), out...)
	}
	log := map[int64][]byte{
		0: append(message(0, 0, 0, []byte("a")), message(0, 1, 0, []byte("b"))...),
		2: message(0, 3, 1, gzip(message(0, 2, 0, []byte("c")), message(0, 3, 0, []byte("d")))),
		4: message(1, 4, 0, []byte("e")),
		5: message(1, 6, 1, gzip(message(1, 0, 0, []byte("f")), message(1, 1, 0, []byte("g")))), // offsets within the wrapper
		7: batchOf(7, "h"),
	}
	answerFetches(c, answerWith(log, 8))
	r := newReader(newFetcher(t, c.ListenAddrs(), FetchConfig{MaxUnpacked: 1}), Cursor{Partition: p})
	r.to(t, 8)
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e", "f", "g", "h"}, r.values[p]); diff != "" || len(r.errs) > 0 {
		t.Errorf("%v %s", r.errs, diff)
	}
	if none := r.stamps[0]; none >= 0 || r.stamps[4] != 1_700_000_000_004 {
		t.Errorf("times %v", r.stamps)
	}
}
