package kafka

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

func TestFetchReadsEveryPartitionInOrder(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		parts := newTopic(t, brokers, 3, nil)
		want := map[job.Partition][]string{}
		var cursors []Cursor
		for _, p := range parts {
			for i := range 500 {
				want[p] = append(want[p], fmt.Sprintf("%d-%d", p.ID, i))
			}
			kafkatest.Produce(t, brokers, p.Topic, p.ID, want[p]...)
			cursors = append(cursors, Cursor{Partition: p})
		}
		r := newReader(newFetcher(t, brokers, FetchConfig{MaxPartitionBytes: 2000}), cursors...)
		r.to(t, 500)
		if diff := cmp.Diff(want, r.values); diff != "" {
			t.Error(diff)
		}
		if len(r.errs) > 0 {
			t.Errorf("errors on the way: %v", r.errs)
		}
		for _, p := range parts {
			if l := r.last[p]; l.End != 500 || l.LastStable != 500 || l.LogStart != 0 || l.LeaderEpoch < 0 {
				t.Errorf("%s: %+v", p, l)
			}
		}
	})
}

func TestFetchReadsCompressedTopics(t *testing.T) {
	t.Parallel()
	codecs := map[string]kgo.CompressionCodec{
		"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		for name, codec := range codecs {
			p := newTopic(t, brokers, 1, nil)[0]
			var want []string
			var records []*kgo.Record
			for i := range 2000 {
				v := fmt.Sprintf(`{"id":%d,"pad":"%s"}`, i, strings.Repeat("x", 100))
				want = append(want, v)
				records = append(records, &kgo.Record{Topic: p.Topic, Value: []byte(v)})
			}
			kafkatest.ProduceRecords(t, brokers, records, kgo.ProducerBatchCompression(codec))
			r := newReader(newFetcher(t, brokers, FetchConfig{}), Cursor{Partition: p})
			r.to(t, 2000)
			if diff := cmp.Diff(want, r.values[p]); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if l := r.last[p]; l.Bytes == 0 {
				t.Errorf("%s: no bytes counted", name)
			}
		}
	})
}

// A fetch of well compressed batches may unpack to a thousand times its size.
func TestAnswersHoldNoMoreThanMaxUnpackedAndABatch(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		p := newTopic(t, brokers, 1, nil)[0]
		const batches, size = 20, 100_000
		for range batches {
			records := []*kgo.Record{{Topic: p.Topic, Value: bytes.Repeat([]byte("x"), size/2)}, {Topic: p.Topic, Value: bytes.Repeat([]byte("y"), size/2)}}
			kafkatest.ProduceRecords(t, brokers, records, kgo.ProducerBatchCompression(kgo.ZstdCompression()))
		}
		whole := newReader(newFetcher(t, brokers, FetchConfig{}), Cursor{Partition: p})
		whole.step(t)
		if got := whole.last[p].Bytes; got < 10*size {
			t.Fatalf("an unbounded answer has %d bytes: this test proves nothing", got)
		}
		r := newReader(newFetcher(t, brokers, FetchConfig{MaxUnpacked: 2 * size}), Cursor{Partition: p})
		for len(r.values[p]) < 2*batches {
			if r.step(t); r.last[p].Bytes > 3*size {
				t.Fatalf("an answer of %d bytes", r.last[p].Bytes)
			}
		}
		if len(r.errs) > 0 {
			t.Errorf("errors: %v", r.errs)
		}
	})
}

// R01: retention overtakes the reader.
func TestDeletedRecordsAreAGap(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		p := newTopic(t, brokers, 1, nil)[0]
		kafkatest.Produce(t, brokers, p.Topic, 0, strings.Fields("0 1 2 3 4 5 6 7 8 9 10 11")...)
		kafkatest.DeleteRecords(t, brokers, p.Topic, 0, 10)
		r := newReader(newFetcher(t, brokers, FetchConfig{}), Cursor{Partition: p, Next: 3})
		got := final[*GapError](t, r)
		want := &GapError{Partition: p, Wanted: 3, Start: 10, End: 12}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if len(r.values[p]) > 0 {
			t.Errorf("records from behind the gap: %v", r.values[p])
		}
		if want := p.String() + ": offsets [3,10) are gone, the log holds [10,12)"; got.Error() != want {
			t.Errorf("text %q, want %q", got, want)
		}
	})
}

func TestCursorBeyondTheEndIsAGap(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		p := newTopic(t, brokers, 1, nil)[0]
		kafkatest.Produce(t, brokers, p.Topic, 0, "a", "b")
		r := newReader(newFetcher(t, brokers, FetchConfig{}), Cursor{Partition: p, Next: 9})
		got := final[*GapError](t, r)
		if got.Wanted != 9 || got.End != 2 {
			t.Errorf("gap %+v", got)
		}
		if r.calls > 40 {
			t.Errorf("%d fetches while it was believed to pass", r.calls)
		}
	})
}

// R03: a topic deleted and made again under a reader. The new topic's records are not read, and nothing spins.
func TestRecreatedTopicIsToldApart(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{true, false} {
		kafkatest.Each(t, func(t *testing.T, brokers []string) {
			name := kafkatest.Name("recreated")
			kafkatest.CreateTopic(t, brokers, name, 1, nil)
			old := partitionsOf(t, brokers, name)[0]
			kafkatest.Produce(t, brokers, name, 0, "a", "b", "c")
			r := newReader(newFetcher(t, brokers, FetchConfig{}), Cursor{Partition: old})
			if running {
				r.to(t, 3)
			} else {
				r.cursors[0].Next = 3
			}
			kafkatest.DeleteTopic(t, brokers, name)
			kafkatest.Topic(t, brokers, name, 1, nil)
			kafkatest.Produce(t, brokers, name, 0, strings.Fields("0 1 2 3 4 5 6 7 8 9")...)
			calls := r.calls
			got := final[*RecreatedError](t, r)
			if now := partitionsOf(t, brokers, name)[0].TopicID; got.Now != now || got.TopicID != old.TopicID {
				t.Errorf("got %+v, want the new id %s", got, now)
			}
			if r.cursors[0].Next != 3 || running && len(r.values[old]) != 3 {
				t.Errorf("cursor %+v, values %v", r.cursors[0], r.values[old])
			}
			if n := r.calls - calls; n > 40 {
				t.Errorf("%d fetches until it was known", n)
			}
		})
	}
}

func TestDeletedTopicIsMissing(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		name := kafkatest.Name("deleted")
		kafkatest.CreateTopic(t, brokers, name, 1, nil)
		p := partitionsOf(t, brokers, name)[0]
		other := newTopic(t, brokers, 1, nil)[0]
		kafkatest.Produce(t, brokers, name, 0, "a")
		r := newReader(newFetcher(t, brokers, FetchConfig{}), Cursor{Partition: p}, Cursor{Partition: other})
		r.until(t, "the record comes", func() bool { return len(r.values[p]) == 1 })
		kafkatest.DeleteTopic(t, brokers, name)
		if got := final[*MissingTopicError](t, r); got.Topic != name {
			t.Errorf("got %+v", got)
		}
		kafkatest.Produce(t, brokers, other.Topic, 0, "still here")
		r.until(t, "the other topic goes on", func() bool { return len(r.values[other]) == 1 })
	})
}

// L04: compaction removed records; Next passes the hole, the same records come once, the number of fetches is bounded.
func TestNextPassesACompactedTail(t *testing.T) {
	t.Parallel()
	configs := map[string]string{
		"cleanup.policy": "compact", "delete.retention.ms": "0", "segment.ms": "300", "min.cleanable.dirty.ratio": "0.01",
		"min.compaction.lag.ms": "0", "max.compaction.lag.ms": "300",
	}
	k, v := []byte("k"), []byte("v")
	t.Run("embedded", func(t *testing.T) {
		c := kafkatest.FakeCluster(t)
		p := newTopic(t, c.ListenAddrs(), 1, configs)[0]
		for _, key := range []string{"k", "a", "k", "k", "b", "k", "k"} {
			kafkatest.ProduceKeyed(t, c.ListenAddrs(), p.Topic, 0, [2][]byte{[]byte(key), []byte(key)})
		}
		before := newReader(newFetcher(t, c.ListenAddrs(), FetchConfig{MaxPartitionBytes: 1}), Cursor{Partition: p, Next: 1})
		before.step(t) // offset 2 will be gone when it goes on
		c.Compact()
		before.to(t, 7)
		start := c.PartitionInfo(p.Topic, 0).LogStartOffset
		r := newReader(newFetcher(t, c.ListenAddrs(), FetchConfig{}), Cursor{Partition: p, Next: start})
		r.to(t, 7)
		if diff := cmp.Diff([]string{"a", "b", "k", "k"}, r.values[p]); diff != "" {
			t.Error(diff)
		}
		if r.calls > 3 || len(r.errs)+len(before.errs) > 0 {
			t.Errorf("%d fetches, errors %v and %v", r.calls, r.errs, before.errs)
		}
	})
	t.Run("kafka", func(t *testing.T) {
		brokers := kafkatest.Real(t)
		p := newTopic(t, brokers, 1, configs)[0]
		// Each produce call is a batch of its own, so that whole batches vanish.
		for range 4 {
			kafkatest.ProduceKeyed(t, brokers, p.Topic, 0, [2][]byte{k, v})
		}
		kafkatest.ProduceKeyed(t, brokers, p.Topic, 0, [2][]byte{k, nil})
		half := newReader(newFetcher(t, brokers, FetchConfig{MaxPartitionBytes: 1}), Cursor{Partition: p})
		half.step(t)
		var seen []string
		rolled := time.Now()
		for n := 5; len(seen) != 0 || n == 5; n++ {
			// The cleaner leaves the active segment alone: another key rolls it.
			if time.Since(rolled) > 3*time.Minute {
				t.Fatalf("the broker did not compact: %v", seen)
			}
			kafkatest.ProduceKeyed(t, brokers, p.Topic, 0, [2][]byte{[]byte("other"), v})
			r := newReader(newFetcher(t, brokers, FetchConfig{}), Cursor{Partition: p})
			r.to(t, int64(n+1))
			if len(r.errs) > 0 {
				t.Fatalf("errors over compacted offsets: %v", r.errs)
			}
			seen = offsetsBelow(t, brokers, p, 5)
		}
		end, _ := kafkatest.Ends(t, brokers, p.Topic, 0)
		half.to(t, end)
		if len(half.errs) > 0 {
			t.Errorf("a reader in the middle of a compacted range: %v", half.errs)
		}
	})
}

// offsetsBelow lists the offsets below limit that still hold records.
func offsetsBelow(t *testing.T, brokers []string, p job.Partition, limit int64) []string {
	t.Helper()
	f := newFetcher(t, brokers, FetchConfig{})
	var out []string
	for next := int64(0); next < limit; {
		got, err := f.Fetch(t.Context(), []Cursor{{Partition: p, Next: next}})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range got {
			next = g.Next
			for _, r := range g.Records {
				if r.Offset < limit {
					out = append(out, fmt.Sprint(r.Offset))
				}
			}
		}
	}
	return out
}

func TestCursorsMayChangeBetweenCalls(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		parts := newTopic(t, brokers, 2, nil)
		var all []string
		for i := range 300 {
			all = append(all, fmt.Sprintf("%03d", i))
		}
		kafkatest.Produce(t, brokers, parts[0].Topic, 0, all...)
		kafkatest.Produce(t, brokers, parts[1].Topic, 1, all...)
		f := newFetcher(t, brokers, FetchConfig{MaxPartitionBytes: 1})
		for _, try := range []struct {
			part int
			next int64
		}{{0, 0}, {0, 250}, {1, 7}, {0, 299}, {0, 0}, {1, 0}} {
			r := newReader(f, Cursor{Partition: parts[try.part], Next: try.next})
			r.to(t, 300)
			if diff := cmp.Diff(all[try.next:], r.values[parts[try.part]]); diff != "" {
				t.Errorf("partition %d from %d: %s", try.part, try.next, diff)
			}
		}
	})
}

func TestQuietTopicIsNotAskedInALoop(t *testing.T) {
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		p := newTopic(t, brokers, 1, nil)[0]
		r := newReader(newFetcher(t, brokers, FetchConfig{MaxWait: 100 * time.Millisecond}), Cursor{Partition: p})
		begin := time.Now()
		for time.Since(begin) < time.Second {
			r.step(t)
		}
		if took := time.Since(begin); float64(r.calls) > 15*took.Seconds() {
			t.Errorf("%d fetches in %s of silence", r.calls, took)
		}
	})
}

func TestTheBytesOfFetchAnswersAreCounted(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.FakeCluster(t).ListenAddrs()
	p := newTopic(t, brokers, 1, nil)[0]
	value := make([]byte, 10_000) // that no codec makes smaller
	_, _ = rand.NewChaCha8([32]byte{}).Read(value)
	kafkatest.Produce(t, brokers, p.Topic, 0, string(value))
	var counted atomic.Int64
	cl, err := NewClient(Config{Brokers: brokers, FetchedBytes: &counted})
	if err != nil {
		t.Fatal(err)
	}
	f := NewFetcher(cl, FetchConfig{})
	t.Cleanup(func() { f.Close(); cl.Close() })
	if n := counted.Load(); n != 0 {
		t.Errorf("%d bytes before the first fetch", n)
	}
	newReader(f, Cursor{Partition: p}).step(t)
	if n := counted.Load(); n < 10_000 || n > 20_000 {
		t.Errorf("%d bytes for a record of 10,000", n)
	}
}
