package kafka

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// What many partitions send at once, unpacked, is bounded over all of them, and each of them has its turn.
func TestAnswersOfManyPartitionsAreBoundedTogether(t *testing.T) {
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		const partitions, batches, size = 30, 4, 100_000
		parts := newTopic(t, brokers, partitions, nil)
		var cursors []Cursor
		for range batches {
			var records []*kgo.Record
			for _, p := range parts {
				records = append(records, &kgo.Record{Topic: p.Topic, Partition: p.ID, Value: bytes.Repeat([]byte("x"), size)})
			}
			kafkatest.ProduceRecords(t, brokers, records, kgo.ProducerBatchCompression(kgo.ZstdCompression()))
		}
		for _, p := range parts {
			cursors = append(cursors, Cursor{Partition: p})
		}
		r := newReader(newFetcher(t, brokers, FetchConfig{MaxAnswer: 5 * size}), cursors...)
		came := func() (n int) {
			for _, p := range parts {
				n += len(r.values[p])
			}
			return n
		}
		for before := 0; before < partitions*batches; before = came() {
			r.step(t)
			// One answer of each leader that was asked for ahead, and one to what was not; each with a batch beyond its bound.
			if got := (came() - before) * size; got > 2*(5+3*2)*size {
				t.Fatalf("%d bytes at once", got)
			}
		}
		if len(r.errs) > 0 || r.calls > partitions*batches/2 {
			t.Errorf("%d fetches, errors %v", r.calls, r.errs)
		}
	})
}

// A broker that is short of memory, or that asks its disks side by side, may leave out any partition of a question for several;
// and not every broker gives a batch that is larger than what it is asked for.
func TestEmptyAnswerAmongOthersIsNoHole(t *testing.T) {
	c := kafkatest.FakeCluster(t)
	parts := newTopic(t, c.ListenAddrs(), 6, nil)
	var cursors []Cursor
	for _, p := range parts {
		kafkatest.Produce(t, c.ListenAddrs(), p.Topic, p.ID, "a", "b", "c")
		cursors = append(cursors, Cursor{Partition: p})
	}
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		r := req.(*kmsg.FetchRequest)
		if len(r.Topics) == 1 && len(r.Topics[0].Partitions) == 1 && r.Topics[0].Partitions[0].PartitionMaxBytes > 1000 {
			return nil, nil, false
		}
		resp := r.ResponseKind().(*kmsg.FetchResponse)
		empty(r, resp)
		return resp, nil, true
	})
	r := newReader(newFetcher(t, c.ListenAddrs(), FetchConfig{}), cursors...)
	r.to(t, 3)
	for _, p := range parts {
		if got := fmt.Sprint(r.values[p]); got != "[a b c]" {
			t.Errorf("%s: got %s", p, got)
		}
	}
}

// Who shares its memory with others that come and go asks for more or less from then on; what the client cannot read stays out of it.
func TestAFetcherCanBeBoundedAnew(t *testing.T) {
	t.Parallel()
	c := kafkatest.FakeCluster(t)
	parts := newTopic(t, c.ListenAddrs(), 1, nil)
	var asked atomic.Int32
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked.Store(req.(*kmsg.FetchRequest).MaxBytes)
		return nil, nil, false
	})
	f := newFetcher(t, c.ListenAddrs(), FetchConfig{MaxBytes: 9 << 20})
	r := newReader(f, Cursor{Partition: parts[0]})
	for _, want := range []int32{9 << 20, 5 << 20, 16 << 20, 3 << 20} {
		if want != 9<<20 {
			f.Bound(FetchConfig{MaxBytes: want % (16 << 20), MaxAnswer: 7 << 20, MaxUnpacked: 2 << 20}) // zero: the default
		}
		if want == 3<<20 {
			f.Bound(FetchConfig{})
			f.most = want
		}
		r.until(t, "the broker is asked for the new bound", func() bool { return asked.Load() == want })
	}
	if f.config.MaxAnswer != 32<<20 || f.config.MaxUnpacked != 8<<20 {
		t.Errorf("%+v", f.config)
	}
}

// later moves a fetcher's clock.
func (f *Fetcher) later(d time.Duration) {
	now := f.now
	f.now = func() time.Time { return now().Add(d) }
}
