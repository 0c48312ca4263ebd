package reprocess_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// brokers is the cluster as the controller sees it, for one topic. Guarded by its mutex.
type brokers struct {
	mu      sync.Mutex
	id      byte
	starts  []int64
	ends    []int64
	stable  []int64 // -1: at the end
	err     error
	missing int // with err: this partition is not answered, the others are
	parts   map[int]error
	at      func(p int) int64 // answer of OffsetsAt
	groups  []string
	times   func(p, offset int64) time.Time // of records; nil: unknown
	flags   job.TopicFacts
}

func newBrokers(ends ...int64) *brokers {
	b := &brokers{id: 1, parts: map[int]error{}, flags: job.TopicFacts{RetentionMS: -1, RetentionBytes: -1, DeleteRetentionMS: -1}}
	for _, e := range ends {
		b.grow(e)
	}
	return b
}

func (b *brokers) grow(end int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.starts, b.ends, b.stable = append(b.starts, 0), append(b.ends, end), append(b.stable, -1)
}

func (b *brokers) set(f func(b *brokers)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b)
}

func (b *brokers) produce(p int, n int64) { b.set(func(b *brokers) { b.ends[p] += n }) }

func (b *brokers) facts() ([]job.PartitionFacts, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil && b.missing == 0 {
		return nil, b.err
	}
	out := make([]job.PartitionFacts, len(b.ends))
	for i := range b.ends {
		stable := b.stable[i]
		if stable < 0 {
			stable = b.ends[i]
		}
		out[i] = job.PartitionFacts{
			Partition: job.Partition{Topic: "events", TopicID: job.TopicID{b.id}, ID: int32(i)},
			Start:     b.starts[i], LastStable: stable, End: b.ends[i], Err: b.parts[i],
		}
		if b.parts[i] != nil {
			out[i].Start, out[i].LastStable, out[i].End = -1, -1, -1
		}
	}
	if b.err != nil {
		return out[:b.missing], b.err
	}
	return out, nil
}

func (b *brokers) Topics(context.Context, []string) ([]job.TopicFacts, error) {
	facts, err := b.facts()
	if err != nil {
		return nil, err
	}
	t := b.flags
	t.Name, t.ID, t.Partitions = "events", job.TopicID{b.id}, facts
	return []job.TopicFacts{t}, nil
}

func (b *brokers) Offsets(context.Context, []string) ([]job.PartitionFacts, error) { return b.facts() }

func (b *brokers) OffsetsAt(context.Context, []string, time.Time) ([]job.PartitionFacts, error) {
	facts, err := b.facts()
	for i := range facts {
		if b.at != nil {
			facts[i].Start = b.at(i)
		}
	}
	return facts, err
}

func (b *brokers) Sizes(context.Context, []string) (map[job.Partition]int64, error) {
	return nil, errors.New("not allowed")
}

func (b *brokers) DeleteGroup(_ context.Context, group string) error {
	b.set(func(b *brokers) { b.groups = append(b.groups, group) })
	return nil
}

func (b *brokers) Times(_ context.Context, at map[job.Partition]int64) (map[job.Partition]time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[job.Partition]time.Time{}
	for p, offset := range at {
		if b.times != nil && offset >= b.starts[p.ID] && offset < b.ends[p.ID] {
			out[p] = b.times(int64(p.ID), offset)
		}
	}
	return out, nil
}
