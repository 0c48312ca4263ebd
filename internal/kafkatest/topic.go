package kafkatest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// patience bounds every wait of a test for a broker. Only failing tests wait that long, so it is generous for loaded
// machines.
const patience = 3 * time.Minute

// Name returns a unique topic name derived from base, because the real broker is shared.
func Name(base string) string { return base + "-" + strings.ToLower(rand.Text()[:8]) }

// Client returns a client that is closed when the test ends. Its producer takes the partition of each record.
func Client(t testing.TB, brokers []string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	base := []kgo.Opt{
		kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(50 * time.Millisecond), kgo.UnknownTopicRetries(20),
	}
	cl, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		t.Fatalf("make a Kafka client: %v", err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// Topic makes a topic, which is deleted when the test ends.
func Topic(t testing.TB, brokers []string, name string, partitions int32, configs map[string]string) {
	t.Helper()
	CreateTopic(t, brokers, name, partitions, configs)
	t.Cleanup(func() { removeTopic(brokers, name) })
}

// CreateTopic makes a topic and leaves it. Records are kept whatever their time, unless configs has retention.ms: a
// real broker would soon delete those with old stamps.
func CreateTopic(t testing.TB, brokers []string, name string, partitions int32, configs map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	values := map[string]*string{"retention.ms": kadm.StringPtr("-1")}
	for k, v := range configs {
		values[k] = &v
	}
	// A deletion of the same name may still be on its way through the broker.
	var err error
	Until(t, "topic "+name+" is made", func() bool {
		_, err = kadm.NewClient(Client(t, brokers)).CreateTopic(ctx, partitions, 1, values, name)
		return err == nil || !strings.Contains(err.Error(), "TOPIC_ALREADY_EXISTS")
	})
	if err != nil {
		t.Fatalf("make topic %s: %v", name, err)
	}
	awaitLeaders(t, brokers, name, int(partitions))
}

// DeleteTopic removes a topic now.
func DeleteTopic(t testing.TB, brokers []string, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := kadm.NewClient(Client(t, brokers)).DeleteTopic(ctx, name); err != nil {
		t.Fatalf("delete topic %s: %v", name, err)
	}
}

// removeTopic cleans up; the broker or the topic may already be gone.
func removeTopic(brokers []string, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RequestRetries(1))
	if err != nil {
		return
	}
	defer cl.Close()
	_, _ = kadm.NewClient(cl).DeleteTopic(ctx, name)
}

// AddPartitions raises the topic's number of partitions to total.
func AddPartitions(t testing.TB, brokers []string, name string, total int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	rs, err := kadm.NewClient(Client(t, brokers)).UpdatePartitions(ctx, total, name)
	if err == nil {
		err = rs.Error()
	}
	if err != nil {
		t.Fatalf("add partitions to %s: %v", name, err)
	}
	awaitLeaders(t, brokers, name, total)
}

// DeleteRecords moves the log start of a partition to offset, as retention would.
func DeleteRecords(t testing.TB, brokers []string, topic string, partition int32, offset int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var os kadm.Offsets
	os.Add(kadm.Offset{Topic: topic, Partition: partition, At: offset})
	rs, err := kadm.NewClient(Client(t, brokers)).DeleteRecords(ctx, os)
	if err == nil {
		err = rs.Error()
	}
	if err != nil {
		t.Fatalf("delete records of %s/%d below %d: %v", topic, partition, offset, err)
	}
}

// Ends returns the high watermark and the last stable offset of a partition.
func Ends(t testing.TB, brokers []string, topic string, partition int32) (end, stable int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	adm := kadm.NewClient(Client(t, brokers))
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatalf("end offset of %s: %v", topic, err)
	}
	stables, err := adm.ListCommittedOffsets(ctx, topic)
	if err != nil {
		t.Fatalf("last stable offset of %s: %v", topic, err)
	}
	e, _ := ends.Lookup(topic, partition)
	s, _ := stables.Lookup(topic, partition)
	return e.Offset, s.Offset
}

// AwaitStable waits until the last stable offset of a partition is at least offset: transaction markers are written
// after the transaction's end was answered.
func AwaitStable(t testing.TB, brokers []string, topic string, partition int32, offset int64) {
	t.Helper()
	Until(t, "the last stable offset arrives", func() bool {
		_, stable := Ends(t, brokers, topic, partition)
		return stable >= offset
	})
}

// Until polls ok until it holds, and fails the test when it does not within three minutes.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	UntilEvery(t, 20*time.Millisecond, what, ok)
}

// UntilEvery is Until with a given pause between two polls, for expensive conditions.
func UntilEvery(t testing.TB, pause time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-time.After(pause):
		case <-deadline:
			t.Fatalf("gave up waiting until %s", what)
		}
	}
}

func awaitLeaders(t testing.TB, brokers []string, name string, partitions int) {
	t.Helper()
	Until(t, "every partition of "+name+" has a leader", func() bool {
		topics, err := kadm.NewClient(Client(t, brokers)).ListTopics(t.Context(), name)
		if err != nil || topics.Error() != nil || len(topics[name].Partitions) != partitions {
			return false
		}
		for _, p := range topics[name].Partitions {
			if p.Err != nil || p.Leader < 0 {
				return false
			}
		}
		return true
	})
}

// GroupOffset returns the offset that a consumer group has committed for a partition, or -1.
func GroupOffset(t testing.TB, brokers []string, group, topic string, partition int32) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	offsets, err := kadm.NewClient(Client(t, brokers)).FetchOffsets(ctx, group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		t.Fatalf("offsets of group %s: %v", group, err)
	}
	o, ok := offsets.Lookup(topic, partition)
	if !ok {
		return -1
	}
	return o.At
}
