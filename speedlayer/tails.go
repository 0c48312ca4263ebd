package speedlayer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/retry"
)

// tails watches the ends of logs for the versions that have read all of theirs: one question to the brokers, five times
// a second, for all of them. Nothing is decided by it: a version that has something to read, or of whose logs something
// is odd, is woken, and its own fetcher finds out. Guarded by mu.
type tails struct {
	*Engine

	mu      sync.Mutex
	resting map[*live]*bed
	poke    chan struct{} // somebody new rests
	stop    context.CancelFunc
	done    chan struct{}
	err     error // of the last question; nil: it was answered
}

// mark is how far a version has read a partition, and the leader's epoch under which it has.
type mark struct {
	next  int64
	epoch int32
}

// bed holds the partitions that are watched for one version.
type bed struct {
	topics []string
	marks  map[job.Partition]mark
	wake   chan struct{}
}

const tailEvery = 200 * time.Millisecond

func newTails(e *Engine) *tails {
	return &tails{Engine: e, resting: map[*live]*bed{}, poke: make(chan struct{}, 1)}
}

// watch begins to watch for a version, in place of what was watched for it before. It is asked at once.
func (t *tails) watch(l *live, b *bed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resting[l] = b
	if t.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		t.stop, t.done = stop, make(chan struct{})
		go t.loop(ctx, t.done)
	}
	select {
	case t.poke <- struct{}{}:
	default:
	}
}

// leave ends the watch for a version. With the last one the watching ends.
func (t *tails) leave(l *live) {
	t.mu.Lock()
	delete(t.resting, l)
	var done chan struct{}
	if len(t.resting) == 0 && t.stop != nil {
		t.stop()
		done, t.stop = t.done, nil
	}
	t.mu.Unlock()
	if done != nil {
		<-done
	}
}

// answered is why the brokers did not answer last; nil: they did.
func (t *tails) answered() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// loop asks until ctx is done.
func (t *tails) loop(ctx context.Context, done chan struct{}) {
	defer close(done)
	quiet := newQuiet(t.Log, t.Now)
	admin, end, err := t.admin()
	if err != nil {
		quiet.warn(cannotFetch, err)
		return
	}
	defer end()
	for ctx.Err() == nil {
		if err := t.ask(ctx, admin); err != nil && ctx.Err() == nil {
			quiet.warn(cannotFetch, err)
		} else {
			quiet.over(cannotFetch)
		}
		limited, cancel := context.WithTimeout(ctx, min(tailEvery, t.tick()))
		select {
		case <-limited.Done():
		case <-t.poke:
			_ = retry.Sleep(limited, t.tick()/moments) // more may come
		}
		cancel()
	}
}

// ask asks for the ends of all that is watched and wakes whom they concern.
func (t *tails) ask(ctx context.Context, admin *kafka.Admin) error {
	t.mu.Lock()
	names := map[string]bool{}
	for _, b := range t.resting {
		for _, name := range b.topics {
			names[name] = true
		}
	}
	t.mu.Unlock()
	if len(names) == 0 {
		return nil
	}
	facts, err := endsOf(ctx, admin, slices.Sorted(maps.Keys(names)))
	if err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.err = err
		return err
	}
	found := make(map[job.Partition]job.PartitionFacts, len(facts))
	for _, f := range facts {
		found[f.Partition] = f
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = nil
	for _, b := range t.resting {
		if !names[b.topics[0]] || b.quiet(found) {
			continue
		}
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// endsOf asks for the ends of topics. Those that are gone, or that the brokers say nothing of, are left out; the error
// is that they did not answer.
func endsOf(ctx context.Context, admin *kafka.Admin, names []string) ([]job.PartitionFacts, error) {
	facts, err := admin.Offsets(ctx, names)
	var missing *kafka.MissingTopicError
	var silent *kafka.ConnectError
	switch {
	case err == nil, errors.As(err, &missing):
		return facts, nil
	case errors.As(err, &silent), ctx.Err() != nil:
		return nil, err
	}
	facts = nil
	for _, name := range names { // what is wrong with one must not hide the others
		some, err := admin.Offsets(ctx, []string{name})
		if errors.As(err, &silent) || ctx.Err() != nil {
			return nil, err
		}
		facts = append(facts, some...)
	}
	return facts, nil
}

// quiet reports whether no watched partition has records to read.
func (b *bed) quiet(found map[job.Partition]job.PartitionFacts) bool {
	for p, m := range b.marks {
		f, ok := found[p]
		if !ok { // the topic is gone, or another one has its name
			return false
		}
		if f.Err != nil { // it has no leader at the moment
			continue
		}
		if f.LastStable > m.next || f.End < m.next || f.Start > m.next || f.LeaderEpoch != m.epoch {
			return false
		}
	}
	return true
}

// admin is the agent's client for questions to the brokers, or one of its own, which end closes.
func (e *Engine) admin() (admin *kafka.Admin, end func(), err error) {
	if e.Admin != nil {
		return e.Admin, func() {}, nil
	}
	admin, err = kafka.NewAdmin(e.Kafka)
	if err != nil {
		return nil, nil, err
	}
	return admin, admin.Close, nil
}
