package kafka

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/leaktest"
)

func TestMain(m *testing.M) {
	leaktest.Main(func() int {
		defer kafkatest.Stop()
		return m.Run()
	})
}

func newAdmin(t *testing.T, brokers []string) *Admin {
	t.Helper()
	a, err := NewAdmin(Config{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// newTopic makes a topic of its own and returns its partitions.
func newTopic(t *testing.T, brokers []string, partitions int32, configs map[string]string) []job.Partition {
	t.Helper()
	name := kafkatest.Name("t")
	kafkatest.Topic(t, brokers, name, partitions, configs)
	return partitionsOf(t, brokers, name)
}

func partitionsOf(t *testing.T, brokers []string, name string) []job.Partition {
	t.Helper()
	facts, err := newAdmin(t, brokers).Offsets(t.Context(), []string{name})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]job.Partition, len(facts))
	for i, f := range facts {
		out[i] = f.Partition
	}
	return out
}

func newFetcher(t *testing.T, brokers []string, c FetchConfig) *Fetcher {
	t.Helper()
	cl, err := NewClient(Config{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	f := NewFetcher(cl, c)
	t.Cleanup(func() { f.Close(); cl.Close() })
	return f
}

// reader drives a Fetcher as its callers do: it takes over Next from every answer.
type reader struct {
	f       *Fetcher
	cursors []Cursor
	values  map[job.Partition][]string
	last    map[job.Partition]Fetched
	stamps  []int64
	calls   int
	errs    []error
}

func newReader(f *Fetcher, cursors ...Cursor) *reader {
	return &reader{f: f, cursors: cursors, values: map[job.Partition][]string{}, last: map[job.Partition]Fetched{}}
}

// step fetches once.
func (r *reader) step(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := r.f.Fetch(ctx, r.cursors)
	if err != nil {
		t.Fatalf("Fetch: %v", err)
	}
	r.calls++
	for _, g := range got {
		r.last[g.Partition] = g
		if g.Err != nil {
			r.errs = append(r.errs, g.Err)
		}
		for i := range r.cursors {
			if r.cursors[i].Partition == g.Partition {
				r.cursors[i].Next = g.Next
			}
		}
		for _, rec := range g.Records {
			r.values[g.Partition] = append(r.values[g.Partition], string(rec.Value))
			r.stamps = append(r.stamps, rec.Timestamp.UnixMilli())
		}
	}
}

// until steps until ok, for at most three minutes.
func (r *reader) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(3 * time.Minute)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("gave up waiting until %s; cursors %+v, last errors %v", what, r.cursors, r.errs[max(0, len(r.errs)-3):])
		}
		r.step(t)
	}
}

// to steps until every cursor has reached next.
func (r *reader) to(t *testing.T, next int64) {
	t.Helper()
	r.until(t, "the cursors reach their offset", func() bool {
		for _, c := range r.cursors {
			if c.Next < next {
				return false
			}
		}
		return true
	})
}

// final steps until an error of type E comes.
func final[E error](t *testing.T, r *reader) E {
	t.Helper()
	var want E
	r.until(t, "a final error comes", func() bool {
		for _, err := range r.errs {
			var e E
			if errors.As(err, &e) {
				want = e
				return true
			}
		}
		return false
	})
	return want
}
