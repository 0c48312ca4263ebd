package archiver

import (
	"context"
	"maps"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// growthEvery is the time between two questions about how the logs of a topic grow: brokers answer with the sizes of
// all their logs.
const growthEvery = time.Minute

// grown is how the logs of a topic grow, as estimated at one moment.
type grown struct {
	at   time.Time
	logs map[job.Partition]job.Growth
}

// deadlines are when retention may delete the records at these offsets of a topic, by time or by size, the earlier of
// the two. Partitions are left out where it will not, or where that is not known.
func (a *Archiver) deadlines(ctx context.Context, f job.TopicFacts,
	at map[job.Partition]int64,
) (map[job.Partition]*time.Time, error) {
	out := map[job.Partition]*time.Time{}
	if len(at) == 0 {
		return out, nil
	}
	if f.RetentionMS >= 0 {
		times, err := a.Brokers.Times(ctx, at)
		if err != nil {
			return nil, err
		}
		for p, t := range times {
			out[p] = new(t.Add(time.Duration(f.RetentionMS) * time.Millisecond))
		}
	}
	if f.RetentionBytes < 0 {
		return out, nil
	}
	logs, err := a.growth(ctx, f)
	if err != nil {
		return nil, err
	}
	for p, offset := range at {
		g, known := logs[p]
		if !known {
			continue
		}
		bySize := g.Deadline(offset, f.RetentionBytes, a.Now())
		if bySize != nil && (out[p] == nil || bySize.Before(*out[p])) {
			out[p] = bySize
		}
	}
	return out, nil
}

// growth is how the logs of a topic grow. It is unknown where this client may not see the sizes of logs.
func (a *Archiver) growth(ctx context.Context, f job.TopicFacts) (map[job.Partition]job.Growth, error) {
	now := a.Now()
	maps.DeleteFunc(a.grown, func(_ job.TopicID, g grown) bool { return now.Sub(g.at) >= growthEvery })
	if g, ok := a.grown[f.ID]; ok {
		return g.logs, nil
	}
	logs := map[job.Partition]job.Growth{}
	sizes, err := a.Brokers.Sizes(ctx, []string{f.Name})
	if err == nil && len(sizes) > 0 { // log dirs need a right that reading does not
		earlier, err := a.Brokers.OffsetsAt(ctx, []string{f.Name}, now.Add(-job.GrowthWindow))
		if err != nil {
			return nil, err
		}
		before := map[job.Partition]int64{}
		for _, p := range earlier {
			before[p.Partition] = p.Start
		}
		for _, p := range f.Partitions {
			size, sized := sizes[p.Partition]
			from, known := before[p.Partition]
			if g, ok := job.NewGrowth(p, size, from); ok && sized && known {
				logs[p.Partition] = g
			}
		}
	}
	a.grown[f.ID] = grown{at: now, logs: logs}
	return logs, nil
}
