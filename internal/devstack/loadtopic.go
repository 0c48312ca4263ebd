package devstack

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/kappactl/kappactl/internal/kafka"
)

// topic is the target topic.
type topic struct {
	name       string
	partitions int
	created    bool
}

// forEver keeps records regardless of their time: retention by time would soon delete those with old event times.
func forEver() map[string]string { return map[string]string{"retention.ms": "-1"} }

func (c LoadConfig) ensureTopic(ctx context.Context) (topic, error) {
	admin, err := kafka.NewAdmin(c.Kafka)
	if err != nil {
		return topic{}, err
	}
	defer admin.Close()
	if err := admin.Ping(ctx); err != nil {
		return topic{}, err
	}
	facts, err := admin.Topics(ctx, []string{c.Topic})
	var missing *kafka.MissingTopicError
	switch {
	case errors.As(err, &missing):
		return c.makeTopic(ctx, admin)
	case err != nil:
		return topic{}, fmt.Errorf("find topic %s: %w", c.Topic, err)
	}
	t := topic{name: c.Topic, partitions: len(facts[0].Partitions)}
	if c.Partitions != 0 && c.Partitions != t.partitions {
		return topic{}, refuse("leave --partitions out to use the topic as it is, or name another topic",
			"topic %s has %d partitions, not %d", c.Topic, t.partitions, c.Partitions)
	}
	return t, nil
}

func (c LoadConfig) makeTopic(ctx context.Context, admin *kafka.Admin) (topic, error) {
	t := topic{name: c.Topic, partitions: c.Partitions, created: true}
	if t.partitions == 0 {
		t.partitions = defaultPartitions
	}
	return t, admin.CreateTopic(ctx, t.name, int32(t.partitions), forEver())
}

var topicPattern = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// validTopic reports whether Kafka accepts the name; the embedded broker accepts any.
func validTopic(name string) bool {
	return topicPattern.MatchString(name) && name != "." && name != ".."
}
