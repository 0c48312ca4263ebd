package reprocess_test

import (
	"context"
	"errors"
	"slices"
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
	second  int  // partitions from here on are those of topic other; 0: there is no such topic
	gone    bool // topic other was deleted
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
		if b.second > 0 && i >= b.second {
			out[i].Topic, out[i].TopicID = "other", job.TopicID{200}
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

// of is what the brokers answer about these topics, in the way of kafka.Admin: those that are there, and an error for one that is not.
func (b *brokers) of(names []string) ([]job.PartitionFacts, error) {
	facts, err := b.facts()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone && slices.Contains(names, "other") {
		err = errors.New("topic other does not exist")
	}
	return slices.DeleteFunc(facts, func(f job.PartitionFacts) bool {
		return !slices.Contains(names, f.Topic) || b.gone && f.Topic == "other"
	}), err
}

func (b *brokers) Topics(_ context.Context, names []string) ([]job.TopicFacts, error) {
	facts, err := b.of(names)
	if err != nil {
		return nil, err
	}
	var out []job.TopicFacts
	for _, f := range facts {
		if n := len(out); n == 0 || out[n-1].Name != f.Topic {
			t := b.flags
			t.Name, t.ID = f.Topic, f.TopicID
			out = append(out, t)
		}
		out[len(out)-1].Partitions = append(out[len(out)-1].Partitions, f)
	}
	return out, nil
}

func (b *brokers) Offsets(_ context.Context, names []string) ([]job.PartitionFacts, error) {
	return b.of(names)
}

func (b *brokers) OffsetsAt(_ context.Context, names []string, _ time.Time) ([]job.PartitionFacts, error) {
	facts, err := b.of(names)
	for i := range facts {
		if b.at != nil {
			facts[i].Start = b.at(int(facts[i].ID))
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
