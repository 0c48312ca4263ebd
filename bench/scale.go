package main

import (
	"context"
	"fmt"
)

// keysBench replays -records records into more and more keys.
func (b *bench) keysBench(ctx context.Context) error {
	for _, keys := range b.keys {
		keys = min(keys, b.records)
		c := b.events(fmt.Sprintf("events-%d", keys), b.records, keys)
		m, err := b.replayOnce(ctx, c, countJob("events", c.name, "event", b.workers))
		if err != nil {
			return fmt.Errorf("%d keys: %w", keys, err)
		}
		b.result.Keys = append(b.result.Keys, scale{int64(keys), m})
		b.say("%d keys: %.2fs, %s/s, peak %.0f MB", keys, m.Served, million(m.rate()), float64(m.Peak)/1e6)
	}
	return nil
}

// growthBench replays more and more page views into the same keys.
func (b *bench) growthBench(ctx context.Context) error {
	for _, records := range b.growth {
		c := b.pageviews(fmt.Sprintf("pageviews-%d", records), records)
		m, err := b.replayOnce(ctx, c, fmt.Sprintf(viewsJob, c.name, b.workers))
		if err != nil {
			return fmt.Errorf("%d records: %w", records, err)
		}
		b.result.Growth = append(b.result.Growth, scale{pages * hours, m})
		b.say("%d records: %.2fs, %s/s, peak %.0f MB", records, m.Served, million(m.rate()), float64(m.Peak)/1e6)
	}
	return nil
}

// replayOnce writes a topic, deploys the job over it and takes the topic away.
func (b *bench) replayOnce(ctx context.Context, c content, job string) (measure, error) {
	defer b.dropTopic(ctx, c.name)
	t, err := b.write(ctx, c)
	if err != nil {
		return measure{}, err
	}
	return b.deploy(ctx, c.name, job, t)
}
