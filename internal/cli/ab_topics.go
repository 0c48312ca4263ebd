package cli

import (
	"context"
	"time"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/sample"
)

// rewardsAtOnce is how many records of a topic with rewards are read in one look.
const rewardsAtOnce = 20_000

// rewardTopics reads the topics of rewards from the brokers of the agent.
type rewardTopics struct {
	kafka kafka.Config
	admin *kafka.Admin
	now   func() time.Time
}

var _ abtest.Topics = rewardTopics{}

// Read implements abtest.Topics.
func (t rewardTopics) Read(ctx context.Context, topic string, next map[int32]int64,
	since time.Time,
) ([]abtest.TopicRecord, []abtest.TopicPart, error) {
	found, err := sample.Follow(ctx, t.kafka, t.admin, topic, next, since, rewardsAtOnce, t.now)
	if err != nil {
		return nil, nil, err
	}
	var records []abtest.TopicRecord
	parts := make([]abtest.TopicPart, len(found))
	for i, s := range found {
		parts[i] = abtest.TopicPart{Partition: s.Partition, Next: s.Next, AtEnd: s.AtEnd}
		for _, r := range s.Records {
			records = append(records, abtest.TopicRecord{
				Partition: r.Partition, Offset: r.Offset, At: r.Timestamp,
				Value: r.Value,
			})
		}
	}
	return records, parts, nil
}
