package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/sample"
)

var (
	errNoRecords = errors.New("the topic holds no records")
	errSilent    = fmt.Errorf("no answer within %s", mergeCheckConnect)
)

// recordsOf returns the oldest and the newest records of the topics, at most mergeCheckRecords of each.
func (a *app) recordsOf(ctx context.Context, s config.Settings, topics []string) ([]*kgo.Record, error) {
	brokers, err := kafkaConfig(ctx, s)
	if err != nil {
		return nil, err
	}
	ranges, err := rangesOf(ctx, brokers, topics)
	if err != nil {
		return nil, err
	}
	reader, err := sample.NewReader(brokers, a.sys.Now)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	oldest, err := reader.Oldest(ctx, ranges, mergeCheckRecords)
	if err != nil && len(sample.Records(oldest)) == 0 {
		return nil, err
	}
	newest, err := reader.Newest(ctx, ranges, mergeCheckRecords)
	if err != nil {
		a.log().Debug("sample the newest records", "cause", err)
	}
	if records := sample.Records(oldest, newest); len(records) > 0 {
		return records, nil
	}
	return nil, errNoRecords
}

// rangesOf returns the committed records that the partitions of the topics hold.
func rangesOf(ctx context.Context, brokers kafka.Config, topics []string) ([]job.Frozen, error) {
	admin, err := kafka.NewAdmin(brokers)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	short, cancel := context.WithTimeoutCause(ctx, mergeCheckConnect, errTimeout)
	defer cancel()
	facts, err := admin.Offsets(short, topics)
	if err != nil && short.Err() != nil {
		return nil, &kafka.ConnectError{Brokers: brokers.Brokers, Err: errSilent}
	}
	if err != nil {
		return nil, err
	}
	var ranges []job.Frozen
	for _, f := range facts {
		if f.Err == nil && f.Start < f.LastStable {
			ranges = append(ranges, job.Frozen{
				Partition: f.Partition, Range: job.Range{From: f.Start, To: f.LastStable}, LeaderEpoch: f.LeaderEpoch,
			})
		}
	}
	if len(ranges) == 0 {
		return nil, errNoRecords
	}
	return ranges, nil
}
