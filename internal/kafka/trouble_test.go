package kafka

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

func TestFetchFollowsAMovedLeader(t *testing.T) {
	t.Parallel()
	c := kafkatest.FakeCluster(t, kfake.NumBrokers(3))
	p := newTopic(t, c.ListenAddrs(), 1, nil)[0]
	kafkatest.Produce(t, c.ListenAddrs(), p.Topic, 0, "a")
	r := newReader(newFetcher(t, c.ListenAddrs(), FetchConfig{}), Cursor{Partition: p})
	r.to(t, 1)
	for i := range 3 {
		next := (c.LeaderFor(p.Topic, 0) + 1) % 3
		if err := c.MoveTopicPartition(p.Topic, 0, next); err != nil {
			t.Fatal(err)
		}
		kafkatest.Produce(t, c.ListenAddrs(), p.Topic, 0, fmt.Sprint(i))
		r.to(t, int64(i+2))
	}
	if diff := cmp.Diff([]string{"a", "0", "1", "2"}, r.values[p]); diff != "" {
		t.Error(diff)
	}
	for _, err := range r.errs {
		if Final(err) {
			t.Errorf("a move of the leader is final: %v", err)
		}
	}
}

func TestPassingErrorsAreBackedOff(t *testing.T) {
	for _, code := range []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.KafkaStorageError,
		kerr.TopicAuthorizationFailed, kerr.UnknownServerError,
	} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			c := kafkatest.FakeCluster(t)
			parts := newTopic(t, c.ListenAddrs(), 2, nil)
			kafkatest.Produce(t, c.ListenAddrs(), parts[0].Topic, 0, "a")
			kafkatest.Produce(t, c.ListenAddrs(), parts[0].Topic, 1, "b")
			fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: parts[0].Topic, Partitions: []int32{1}, Err: code, Count: -1})
			r := newReader(newFetcher(t, c.ListenAddrs(), FetchConfig{}), Cursor{Partition: parts[0]}, Cursor{Partition: parts[1]})
			r.until(t, "two errors came", func() bool { return len(r.errs) > 1 })
			if len(r.values[parts[0]]) != 1 {
				t.Error("the healthy partition was held up")
			}
			if hits := fault.Hits(); hits > 4 {
				t.Errorf("asked %d times for two errors", hits)
			}
			if Final(r.errs[0]) || !strings.Contains(r.errs[0].Error(), code.Message) {
				t.Errorf("error %v", r.errs[0])
			}
			fault.Remove()
			r.until(t, "it recovers", func() bool { return len(r.values[parts[1]]) == 1 })
		})
	}
}

func TestFetchSurvivesABrokerRestart(t *testing.T) {
	t.Parallel()
	b := kafkatest.StartReal(t)
	p := newTopic(t, b.Brokers, 1, nil)[0]
	kafkatest.Produce(t, b.Brokers, p.Topic, 0, "a")
	r := newReader(newFetcher(t, b.Brokers, FetchConfig{}), Cursor{Partition: p})
	r.to(t, 1)
	b.Kill(t)
	r.until(t, "the loss is seen", func() bool { return len(r.errs) > 0 })
	calls, begin := r.calls, time.Now()
	for time.Since(begin) < 2*time.Second {
		r.step(t)
	}
	if n, took := r.calls-calls, time.Since(begin); float64(n) > 15*took.Seconds() {
		t.Errorf("%d fetches in %s without a broker", n, took)
	}
	b.Start(t)
	kafkatest.Produce(t, b.Brokers, p.Topic, 0, "b")
	r.to(t, 2)
	if diff := cmp.Diff([]string{"a", "b"}, r.values[p]); diff != "" {
		t.Error(diff)
	}
	for _, err := range r.errs {
		if Final(err) {
			t.Errorf("a restart is final: %v", err)
		}
	}
}

func TestFetchEndsWithItsContextAndItsClient(t *testing.T) {
	brokers := kafkatest.Fake(t)
	p := newTopic(t, brokers, 1, nil)[0]
	cl, err := NewClient(Config{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	f := NewFetcher(cl, FetchConfig{})
	r := newReader(f, Cursor{Partition: p})
	r.step(t)
	cl.Close()
	for range 10 {
		if _, err = f.Fetch(t.Context(), r.cursors); err != nil {
			return
		}
	}
	t.Error("Fetch goes on over a closed client")
}
