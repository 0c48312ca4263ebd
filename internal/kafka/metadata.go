package kafka

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/job"
)

// metadata is one broker's fresh answer about topics; it never comes from a cache.
type metadata struct {
	cluster string
	topics  map[string]topicMeta
}

type topicMeta struct {
	id    job.TopicID
	err   error
	parts []partitionMeta // by partition id
}

type partitionMeta struct {
	id     int32
	leader int32
	epoch  int32
	err    error
}

// leaderless returns the number of partitions without a leader.
func (t topicMeta) leaderless() int {
	n := 0
	for _, p := range t.parts {
		if p.leader < 0 {
			n++
		}
	}
	return n
}

func (t topicMeta) partition(id int32) (partitionMeta, bool) {
	i, ok := slices.BinarySearchFunc(t.parts, id, func(p partitionMeta, id int32) int { return cmp.Compare(p.id, id) })
	if !ok {
		return partitionMeta{}, false
	}
	return t.parts[i], true
}

// nameID replaces the id of a topic for which brokers return none, as brokers before Kafka 2.8 and some
// Kafka-compatible systems do. It distinguishes topics, as positions require, but not a topic from a deleted one of the
// same name.
func nameID(topic string) (id job.TopicID) {
	sum := sha256.Sum256([]byte("kappactl topic without an id: " + topic))
	copy(id[:], sum[:])
	return id
}

// HasID reports whether the brokers returned an id for the topic. Without one, a recreated topic cannot be recognised.
func HasID(topic string, id job.TopicID) bool { return id != job.TopicID{} && id != nameID(topic) }

// requestMetadata asks any broker about the named topics; without names only about the cluster. It also updates the
// client's broker addresses.
func requestMetadata(ctx context.Context, cl *kgo.Client, names []string) (metadata, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = false
	req.Topics = []kmsg.MetadataRequestTopic{} // nil would request every topic
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return metadata{}, err
	}
	m := metadata{topics: make(map[string]topicMeta, len(resp.Topics))}
	if resp.ClusterID != nil {
		m.cluster = *resp.ClusterID
	}
	for _, t := range resp.Topics {
		if t.Topic == nil {
			continue
		}
		tm := topicMeta{id: t.TopicID, err: kerr.ErrorForCode(t.ErrorCode)}
		if tm.err == nil && tm.id == (job.TopicID{}) {
			tm.id = nameID(*t.Topic)
		}
		for _, p := range t.Partitions {
			pm := partitionMeta{id: p.Partition, leader: p.Leader, epoch: p.LeaderEpoch, err: kerr.ErrorForCode(p.ErrorCode)}
			if pm.err != nil && !errors.Is(pm.err, kerr.ReplicaNotAvailable) {
				pm.leader = -1
			}
			tm.parts = append(tm.parts, pm)
		}
		slices.SortFunc(tm.parts, func(a, b partitionMeta) int { return cmp.Compare(a.id, b.id) })
		m.topics[*t.Topic] = tm
	}
	return m, nil
}
