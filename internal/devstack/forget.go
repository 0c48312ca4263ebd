package devstack

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// DeleteOlderHalf deletes the older half of each partition of a topic, as retention does.
func DeleteOlderHalf(ctx context.Context, brokers []string, topic string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return fmt.Errorf("delete records of %s: %w", topic, err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("delete records of %s: %w", topic, err)
	}
	var before kadm.Offsets
	ends.Each(func(o kadm.ListedOffset) {
		before.Add(kadm.Offset{Topic: topic, Partition: o.Partition, At: o.Offset / 2})
	})
	deleted, err := admin.DeleteRecords(ctx, before)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		return fmt.Errorf("delete records of %s: %w", topic, err)
	}
	return nil
}
