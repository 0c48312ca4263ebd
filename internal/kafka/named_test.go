package kafka

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// Brokers before Kafka 2.8, and some that are not Kafka, give topics no id. Positions are keyed by it, so each topic has one all the
// same; and a broker that could be asked by id is asked by name then.
func TestTopicsWithoutIdsAreToldApart(t *testing.T) {
	half := kversion.Stable() // in the middle of an upgrade
	half.SetMaxKeyVersion(int16(kmsg.Metadata), 9)
	for name, versions := range map[string]*kversion.Versions{"Kafka 2.7": kversion.V2_7_0(), "an upgrade": half} {
		t.Run(name, func(t *testing.T) {
			brokers := kafkatest.FakeCluster(t, kfake.MaxVersions(versions)).ListenAddrs()
			var parts []job.Partition
			var cursors []Cursor
			for i := range 2 {
				p := newTopic(t, brokers, 1, nil)[0]
				kafkatest.Produce(t, brokers, p.Topic, 0, fmt.Sprint(i), "x")
				parts, cursors = append(parts, p), append(cursors, Cursor{Partition: p})
			}
			if parts[0].TopicID == parts[1].TopicID || parts[0].TopicID == (job.TopicID{}) {
				t.Errorf("topics have the ids %s and %s", parts[0].TopicID, parts[1].TopicID)
			}
			if again := partitionsOf(t, brokers, parts[0].Topic)[0]; again != parts[0] {
				t.Errorf("a topic is %v, then %v", parts[0], again)
			}
			r := newReader(newFetcher(t, brokers, FetchConfig{}), cursors...)
			r.to(t, 2)
			for i, p := range parts {
				if got := r.values[p]; len(got) != 2 || got[0] != fmt.Sprint(i) {
					t.Errorf("%s: %v", p, got)
				}
			}
			if len(r.errs) > 0 {
				t.Errorf("errors: %v", r.errs)
			}
		})
	}
}

// In the middle of an upgrade a broker that gives no ids may be asked after one that does: that is no other topic.
func TestABrokerWithoutIdsDoesNotSayThatTheTopicIsAnother(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.FakeCluster(t, kfake.MaxVersions(kversion.V2_7_0())).ListenAddrs()
	p := newTopic(t, brokers, 1, nil)[0]
	kafkatest.Produce(t, brokers, p.Topic, 0, "x")
	p.TopicID = job.TopicID{1}
	r := newReader(newFetcher(t, brokers, FetchConfig{}), Cursor{Partition: p})
	r.until(t, "the record or an error comes", func() bool { return len(r.values[p])+len(r.errs) > 0 })
	if len(r.errs) > 0 {
		t.Errorf("errors: %v", r.errs)
	}
}
