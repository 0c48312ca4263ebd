package plan

import (
	"context"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// AskAges asks the brokers how old records are. Topics that keep everything are not asked about. What is archived, of a
// job with a history, is not deleted.
func AskAges(ctx context.Context, brokers Brokers, h History, names []string, now time.Time) (readiness.Ages, error) {
	a, err := askAges(ctx, brokers, names, now)
	if err != nil || h == nil {
		return a, err
	}
	kept, err := h.Archived(ctx, names)
	if err != nil {
		return a, fmt.Errorf("read what the archive holds of %v: %w", names, err)
	}
	a.SetArchived(kept)
	return a, nil
}

func askAges(ctx context.Context, brokers Brokers, names []string, now time.Time) (readiness.Ages, error) {
	facts, err := brokers.Topics(ctx, names)
	if err != nil {
		return readiness.Ages{}, fmt.Errorf("read the retention of %v: %w", names, err)
	}
	a, bySize := readiness.NewAges(now, facts), false
	for _, t := range facts {
		if t.RetentionMS >= 0 {
			if err := askSteps(ctx, brokers, t, a); err != nil {
				return a, err
			}
		}
		bySize = bySize || t.RetentionBytes >= 0
	}
	if bySize {
		return a, askGrowth(ctx, brokers, facts, a)
	}
	return a, nil
}

// askSteps adds, for each time to deletion, the first offset that has it left.
func askSteps(ctx context.Context, brokers Brokers, t job.TopicFacts, a readiness.Ages) error {
	keeps := time.Duration(min(t.RetentionMS, int64(100*365*24*time.Hour/time.Millisecond))) * time.Millisecond
	for _, left := range append(readiness.LeftSteps(), keeps) {
		if left > keeps {
			continue
		}
		found, err := offsetsAt(ctx, brokers, []string{t.Name}, a.At.Add(left-keeps))
		if err != nil {
			return err
		}
		for p, offset := range found {
			a.AddStep(p, offset, a.At.Add(left))
		}
	}
	return nil
}

// askGrowth adds how fast each log grew of late.
func askGrowth(ctx context.Context, brokers Brokers, facts []job.TopicFacts, a readiness.Ages) error {
	for _, t := range facts {
		if t.RetentionBytes < 0 {
			continue
		}
		sizes, err := brokers.Sizes(ctx, []string{t.Name})
		if err != nil {
			continue // log dirs need a right that reading does not
		}
		earlier, err := offsetsAt(ctx, brokers, []string{t.Name}, a.At.Add(-job.GrowthWindow))
		if err != nil {
			return err
		}
		for _, p := range t.Partitions {
			size, known := sizes[p.Partition]
			if !known {
				continue
			}
			before, ok := earlier[p.Partition]
			if !ok {
				before = -1
			}
			if g, ok := job.NewGrowth(p, size, before); ok {
				a.SetGrowth(p.Partition, g)
			}
		}
	}
	return nil
}
