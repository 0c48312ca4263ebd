package kafka

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// answerFetches makes the cluster answer every fetch with what answer makes of it.
func answerFetches(c *kfake.Cluster, answer func(*kmsg.FetchRequest, *kmsg.FetchResponse)) {
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		r := req.(*kmsg.FetchRequest)
		resp := r.ResponseKind().(*kmsg.FetchResponse)
		answer(r, resp)
		return resp, nil, true
	})
}

// empty answers for every partition asked for: no records, and a log that ends at 10.
func empty(req *kmsg.FetchRequest, resp *kmsg.FetchResponse) {
	for _, t := range req.Topics {
		rt := kmsg.NewFetchResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewFetchResponseTopicPartition()
			rp.Partition, rp.HighWatermark, rp.LastStableOffset = p.Partition, 10, 10
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
}

// Compaction may remove every record up to the end of the log, and then no batch tells the next offset. A broker that is slow to
// find its data answers the same for a moment.
func TestNextPassesAHoleUpToTheEnd(t *testing.T) {
	t.Parallel()
	c := kafkatest.FakeCluster(t)
	p := newTopic(t, c.ListenAddrs(), 1, nil)[0]
	answerFetches(c, empty)
	f := newFetcher(t, c.ListenAddrs(), FetchConfig{MaxWait: 100 * time.Millisecond})
	r := newReader(f, Cursor{Partition: p, Next: 4})
	for range 3 {
		r.step(t)
	}
	if r.cursors[0].Next != 4 {
		t.Errorf("an answer that may pass is believed at once: next is %d", r.cursors[0].Next)
	}
	f.later(holeAfter)
	r.calls = 0
	r.to(t, 10)
	if r.calls > 3 || len(r.errs) > 0 {
		t.Errorf("%d fetches, errors %v", r.calls, r.errs)
	}
}

// Neither the duration of another condition nor an earlier empty answer followed by an error is evidence of a hole.
func TestAHoleHasToBeSeenForItsOwnTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		first func(*kmsg.FetchRequest, *kmsg.FetchResponse)
		code  *kerr.Error
	}{
		{"a log that is cut off", nil, kerr.OffsetOutOfRange},
		{"an error in between", empty, kerr.UnknownServerError},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var answer atomic.Value
			cluster := kafkatest.FakeCluster(t)
			p := newTopic(t, cluster.ListenAddrs(), 1, nil)[0]
			answerFetches(cluster, func(req *kmsg.FetchRequest, resp *kmsg.FetchResponse) {
				answer.Load().(func(*kmsg.FetchRequest, *kmsg.FetchResponse))(req, resp)
			})
			f := newFetcher(t, cluster.ListenAddrs(), FetchConfig{MaxWait: 100 * time.Millisecond})
			r := newReader(f, Cursor{Partition: p, Next: 4})
			if c.first != nil {
				answer.Store(c.first)
				r.step(t)
			}
			answer.Store(func(req *kmsg.FetchRequest, resp *kmsg.FetchResponse) {
				empty(req, resp)
				resp.Topics[0].Partitions[0].ErrorCode = c.code.Code
			})
			r.until(t, "the error comes", func() bool { return len(r.errs) > 0 })
			f.later(holeAfter)
			answer.Store(empty)
			r.step(t)
			if r.cursors[0].Next != 4 {
				t.Errorf("the first empty answer is believed: next is %d", r.cursors[0].Next)
			}
			f.later(holeAfter)
			r.to(t, 10)
		})
	}
}

// The same answer from a log in tiered storage says nothing: the other storage may only be slow.
func TestEmptyAnswerFromTieredStorageIsNoHole(t *testing.T) {
	t.Parallel()
	c := kafkatest.FakeCluster(t)
	p := newTopic(t, c.ListenAddrs(), 1, nil)[0]
	answerFetches(c, empty)
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		r := req.(*kmsg.ListOffsetsRequest)
		if r.Topics[0].Partitions[0].Timestamp != atLocalStart {
			return nil, nil, false
		}
		resp := r.ResponseKind().(*kmsg.ListOffsetsResponse)
		rt := kmsg.NewListOffsetsResponseTopic()
		rt.Topic = p.Topic
		rp := kmsg.NewListOffsetsResponseTopicPartition()
		rp.Offset = 7
		rt.Partitions = append(rt.Partitions, rp)
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
	r := newReader(newFetcher(t, c.ListenAddrs(), FetchConfig{}), Cursor{Partition: p, Next: 4})
	for range 5 {
		r.step(t)
	}
	if r.cursors[0].Next != 4 {
		t.Errorf("passed offsets that only the other storage holds: next is %d", r.cursors[0].Next)
	}
}

// A broker over its quota answers without any partition.
func TestThrottledAnswerIsNotAskedAgainAtOnce(t *testing.T) {
	c := kafkatest.FakeCluster(t)
	p := newTopic(t, c.ListenAddrs(), 1, nil)[0]
	asked := make(chan struct{}, 1000)
	answerFetches(c, func(*kmsg.FetchRequest, *kmsg.FetchResponse) { asked <- struct{}{} })
	r := newReader(newFetcher(t, c.ListenAddrs(), FetchConfig{MaxWait: 100 * time.Millisecond}), Cursor{Partition: p})
	begin := time.Now()
	for time.Since(begin) < time.Second || len(asked) < 3 {
		r.step(t)
	}
	if n, took := len(asked), time.Since(begin); float64(n) > 15*took.Seconds() {
		t.Errorf("asked %d times in %s", n, took)
	}
	if len(r.errs) > 0 || len(r.last) > 0 {
		t.Errorf("answers out of nothing: %v %v", r.errs, r.last)
	}
}

// A stopped broker process is noticed within the read timeout, and the caller is not held up until then.
func TestStoppedBrokerIsAPassingError(t *testing.T) {
	t.Parallel()
	b := kafkatest.StartReal(t)
	p := newTopic(t, b.Brokers, 1, nil)[0]
	kafkatest.Produce(t, b.Brokers, p.Topic, 0, "a")
	r := newReader(newFetcher(t, b.Brokers, FetchConfig{}), Cursor{Partition: p})
	r.to(t, 1)
	b.Pause(t)
	begin := time.Now()
	r.until(t, "the silence is noticed", func() bool {
		step := time.Now()
		r.step(t)
		if d := time.Since(step); d > 20*time.Second {
			t.Errorf("a fetch took %s", d)
		}
		return len(r.errs) > 0
	})
	if d := time.Since(begin); d > time.Minute {
		t.Errorf("noticed after %s", d)
	}
	b.Resume(t)
	kafkatest.Produce(t, b.Brokers, p.Topic, 0, "b")
	r.to(t, 2)
	if diff := cmp.Diff(map[job.Partition][]string{p: {"a", "b"}}, r.values); diff != "" {
		t.Error(diff)
	}
}
