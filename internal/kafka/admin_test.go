package kafka

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

func TestTopicsTellsIdsOffsetsAndSettings(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		a := newAdmin(t, brokers)
		name := kafkatest.Name("facts")
		err := a.CreateTopic(t.Context(), name, 2, map[string]string{
			"cleanup.policy": "compact,delete", "retention.ms": "3600000", "retention.bytes": "1000000", "max.message.bytes": "2000000",
		})
		if err != nil {
			t.Fatal(err)
		}
		kv := [2][]byte{[]byte("k"), []byte("v")}
		kafkatest.ProduceKeyed(t, brokers, name, 1, kv, kv, kv)
		facts, err := a.Topics(t.Context(), []string{name})
		if err != nil {
			t.Fatal(err)
		}
		id := facts[0].ID
		if id == (job.TopicID{}) {
			t.Error("no topic id")
		}
		want := []job.TopicFacts{{
			Name: name, ID: id, Compacted: true, RetentionMS: 3_600_000, RetentionBytes: 1_000_000, MaxMessageBytes: 2_000_000, DeleteRetentionMS: 86_400_000,
			Partitions: []job.PartitionFacts{
				{Partition: job.Partition{Topic: name, TopicID: id, ID: 0}},
				{Partition: job.Partition{Topic: name, TopicID: id, ID: 1}, LastStable: 3, End: 3},
			},
		}}
		if diff := cmp.Diff(want, facts, cmpopts.IgnoreFields(job.PartitionFacts{}, "LeaderEpoch")); diff != "" {
			t.Error(diff)
		}
		// Its retention.ms is set, by default, and deletes nothing.
		compacted := kafkatest.Name("compacted")
		kafkatest.Topic(t, brokers, compacted, 1, map[string]string{"cleanup.policy": "compact"})
		facts, err = a.Topics(t.Context(), []string{compacted})
		if err != nil || !facts[0].Compacted || facts[0].RetentionMS != -1 || facts[0].RetentionBytes != -1 {
			t.Errorf("%+v (%v)", facts, err)
		}
		if err := a.CreateTopic(t.Context(), name, 1, nil); !errors.Is(err, kerr.TopicAlreadyExists) {
			t.Errorf("making it twice: %v", err)
		}
	})
}

func TestTopicIdIsFreshAfterRecreation(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		a := newAdmin(t, brokers)
		name := kafkatest.Name("again")
		kafkatest.CreateTopic(t, brokers, name, 1, nil)
		before, err := a.Topics(t.Context(), []string{name})
		if err != nil {
			t.Fatal(err)
		}
		kafkatest.DeleteTopic(t, brokers, name)
		kafkatest.Topic(t, brokers, name, 1, nil)
		after, err := a.Topics(t.Context(), []string{name})
		if err != nil {
			t.Fatal(err)
		}
		if before[0].ID == after[0].ID {
			t.Errorf("still the id of the deleted topic: %s", after[0].ID)
		}
	})
}

// L01, L03, L06: what the offsets are with markers, with an open transaction, and in empty and expired partitions.
func TestOffsetsOfEveryKindOfPartition(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		parts := newTopic(t, brokers, 4, nil)
		name := parts[0].Topic
		kafkatest.Produce(t, brokers, name, 1, strings.Fields("a b c d e")...)
		kafkatest.DeleteRecords(t, brokers, name, 1, 5)
		kafkatest.Produce(t, brokers, name, 2, strings.Fields("a b c d e")...)
		kafkatest.DeleteRecords(t, brokers, name, 2, 3)
		kafkatest.Committed(t, brokers, name, 3, "a")
		kafkatest.AwaitStable(t, brokers, name, 3, 2)
		open := kafkatest.Begin(t, brokers)
		open.Produce(t, &kgo.Record{Topic: name, Partition: 3, Value: []byte("b")})
		kafkatest.Produce(t, brokers, name, 3, strings.Repeat("x", 10), "y")
		got, err := newAdmin(t, brokers).Offsets(t.Context(), []string{name})
		if err != nil {
			t.Fatal(err)
		}
		want := []job.PartitionFacts{
			{Partition: parts[0]},
			{Partition: parts[1], Start: 5, LastStable: 5, End: 5},
			{Partition: parts[2], Start: 3, LastStable: 5, End: 5},
			{Partition: parts[3], LastStable: 2, End: 5},
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(job.PartitionFacts{}, "LeaderEpoch")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOffsetsAtATime(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		p := newTopic(t, brokers, 1, nil)[0]
		for _, ms := range []int64{1000, 5000, 2000, 9000, 3000} {
			kafkatest.ProduceRecords(t, brokers, []*kgo.Record{{Topic: p.Topic, Value: []byte("v"), Timestamp: time.UnixMilli(ms)}})
		}
		a := newAdmin(t, brokers)
		for ms, want := range map[int64]int64{0: 0, 1000: 0, 1001: 1, 5001: 3, 9001: 5} {
			got, err := a.OffsetsAt(t.Context(), []string{p.Topic}, time.UnixMilli(ms))
			if err != nil {
				t.Fatal(err)
			}
			if got[0].Start != want || got[0].End != 5 {
				t.Errorf("at %d: %+v, want start %d", ms, got[0], want)
			}
		}
	})
}

// L08: one partition cannot be read, the others are answered.
func TestOffsetsKeepErrorsPerPartition(t *testing.T) {
	t.Parallel()
	c := kafkatest.FakeCluster(t)
	parts := newTopic(t, c.ListenAddrs(), 3, nil)
	kafkatest.Produce(t, c.ListenAddrs(), parts[0].Topic, 2, "a")
	fault := c.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: parts[0].Topic, Partitions: []int32{1}, Err: kerr.LeaderNotAvailable, Count: -1,
	})
	a := newAdmin(t, c.ListenAddrs())
	got, err := a.Offsets(t.Context(), []string{parts[0].Topic})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Err != nil || got[2].Err != nil || got[2].End != 1 {
		t.Errorf("the healthy partitions: %+v %+v", got[0], got[2])
	}
	if b := got[1]; !errors.Is(b.Err, kerr.LeaderNotAvailable) || b.Start != -1 || b.LastStable != -1 || b.End != -1 {
		t.Errorf("the partition without a leader: %+v", b)
	}
	fault.Remove()
	if got, err = a.Offsets(t.Context(), []string{parts[0].Topic}); err != nil || got[1].Err != nil {
		t.Errorf("after the leader came back: %+v, %v", got[1], err)
	}
}

// L13: a missing topic is named and does not hide the others.
func TestMissingTopicIsNamedBesideTheOthers(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		p := newTopic(t, brokers, 1, nil)[0]
		a := newAdmin(t, brokers)
		got, err := a.Offsets(t.Context(), []string{"nowhere", p.Topic})
		var missing *MissingTopicError
		if !errors.As(err, &missing) || missing.Topic != "nowhere" {
			t.Errorf("error %v", err)
		}
		if len(got) != 1 || got[0].Partition != p {
			t.Errorf("the topic that exists: %+v", got)
		}
		if _, err := a.Topics(t.Context(), []string{"nowhere"}); !errors.As(err, &missing) {
			t.Errorf("Topics: %v", err)
		}
	})
}

func TestSizesOfPartitions(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		parts := newTopic(t, brokers, 2, nil)
		kafkatest.Produce(t, brokers, parts[0].Topic, 1, strings.Repeat("x", 5000), strings.Repeat("y", 5000))
		a := newAdmin(t, brokers)
		kafkatest.Until(t, "the broker lists the partition", func() bool {
			sizes, err := a.Sizes(t.Context(), []string{parts[0].Topic})
			if err != nil {
				t.Fatal(err)
			}
			return len(sizes) == 2 && sizes[parts[1]] > 50 && sizes[parts[0]] == 0
		})
	})
}

func TestGroupOffsetsAreWrittenAndRemoved(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		p := newTopic(t, brokers, 1, nil)[0]
		a := newAdmin(t, brokers)
		group := kafkatest.Name("kappactl.g.v1")
		if err := a.CommitGroup(t.Context(), group, map[job.Partition]int64{p: 7}); err != nil {
			t.Fatal(err)
		}
		if got := kafkatest.GroupOffset(t, brokers, group, p.Topic, p.ID); got != 7 {
			t.Errorf("group offset %d, want 7", got)
		}
		for range 2 {
			if err := a.DeleteGroup(t.Context(), group); err != nil {
				t.Fatal(err)
			}
		}
		if got := kafkatest.GroupOffset(t, brokers, group, p.Topic, p.ID); got != -1 {
			t.Errorf("group offset %d after its removal", got)
		}
	})
}

func TestNothingListeningIsSaidAtOnce(t *testing.T) {
	addr := freeAddress(t)
	a := newAdmin(t, []string{addr})
	begin := time.Now()
	err := a.Ping(t.Context())
	var connect *ConnectError
	if !errors.As(err, &connect) {
		t.Fatalf("error %v", err)
	}
	if want := "Kafka at " + addr + ": connect: connection refused"; err.Error() != want {
		t.Errorf("text %q, want %q", err, want)
	}
	if d := time.Since(begin); d > time.Minute {
		t.Errorf("took %s", d)
	}
}

func TestUnknownHostIsNamed(t *testing.T) {
	a := newAdmin(t, []string{"no-such-host.invalid:9092"})
	err := a.Ping(t.Context())
	var connect *ConnectError
	if !errors.As(err, &connect) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "no-such-host.invalid") {
		t.Errorf("error %v", err)
	}
}

// C07: a port that takes connections and never answers.
func TestSilentPortEndsWithinTheTimeout(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	a := newAdmin(t, []string{l.Addr().String()})
	begin := time.Now()
	err = a.Ping(t.Context())
	var connect *ConnectError
	if !errors.As(err, &connect) || !strings.HasSuffix(err.Error(), "no answer in time") {
		t.Errorf("error %v", err)
	}
	if d := time.Since(begin); d > time.Minute {
		t.Errorf("took %s", d)
	}
}

func TestNoBrokersIsRefused(t *testing.T) {
	if _, err := NewAdmin(Config{}); !errors.Is(err, errNoBrokers) {
		t.Errorf("error %v", err)
	}
}

// freeAddress is an address where nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestOffsetsAndEpochAreOfOneMoment: metadata may be older than the offsets that are asked for with it; a range frozen so would seem
// to be cut off where the older epoch ends.
func TestOffsetsAndEpochAreOfOneMoment(t *testing.T) {
	t.Parallel()
	c := kafkatest.FakeCluster(t, kfake.NumBrokers(2))
	p := newTopic(t, c.ListenAddrs(), 1, nil)[0]
	kafkatest.Produce(t, c.ListenAddrs(), p.Topic, 0, "a")
	a := newAdmin(t, c.ListenAddrs())
	names := []string{p.Topic}
	stale, err := requestMetadata(t.Context(), a.cl, names)
	if err != nil {
		t.Fatal(err)
	}
	leader := c.LeaderFor(p.Topic, 0)
	for _, to := range []int32{1 - leader, leader} {
		if err := c.MoveTopicPartition(p.Topic, 0, to); err != nil {
			t.Fatal(err)
		}
	}
	kafkatest.Produce(t, c.ListenAddrs(), p.Topic, 0, "b")
	facts, _, err := a.offsetsOnce(t.Context(), stale, names, atStart)
	if err != nil || !errors.Is(facts[0].Err, kerr.FencedLeaderEpoch) || !retriable(facts) {
		t.Errorf("%+v (%v): offsets of a later epoch than that of the metadata", facts, err)
	}
	facts, err = a.Offsets(t.Context(), names)
	if err != nil || facts[0].Err != nil || facts[0].End != 2 || facts[0].LeaderEpoch <= stale.topics[p.Topic].parts[0].epoch {
		t.Errorf("%+v (%v), want the end under the epoch now", facts, err)
	}
}
