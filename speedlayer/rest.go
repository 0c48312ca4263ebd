package speedlayer

import (
	"context"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/retry"
)

// A version for which there has been nothing to read for restAfter rests: its client, its query session and its decoder
// are let go, and the end of its logs is watched for it together with that of others (tails). One that has just been
// taken up rests from the start.
const restAfter = 10 * time.Second

// mayRest reports whether there is nothing to do but wait for records: all is read and committed, nothing is wrong and
// nothing is held.
func (l *live) mayRest() bool {
	if l.doubt || l.bed == nil && l.Now().Sub(l.active) < l.restAfter {
		return false
	}
	for _, o := range l.owned {
		odd := o.halted || o.hold != nil || o.fault.Kind != job.FaultNone || l.bed == nil && !o.failing.IsZero()
		if odd || o.pending() || o.behind > 0 {
			return false
		}
	}
	return true
}

// rest waits for records, or until there is another look at how the partitions are shared.
func (l *live) rest(ctx context.Context) {
	l.letGo()
	l.lie()
	if l.bed == nil { // no partition is ours
		_ = retry.Sleep(ctx, l.tick())
		return
	}
	within, cancel := context.WithTimeout(ctx, l.tick())
	defer cancel()
	select {
	case <-l.bed.wake:
		l.rise()
	case <-within.Done():
		err := l.tails.answered()
		for _, o := range l.owned {
			o.answered(err, l.Now())
		}
	}
}

// lie has the partitions watched that are ours now.
func (l *live) lie() {
	l.mu.Lock()
	generation := l.generation
	l.mu.Unlock()
	switch {
	case len(l.owned) == 0:
		l.rise()
		return
	case l.bed != nil && l.bedMade == generation:
		return
	}
	b := &bed{
		topics: l.spec.Source.Topics, marks: make(map[job.Partition]mark, len(l.owned)),
		wake: make(chan struct{}, 1),
	}
	for p, o := range l.owned {
		b.marks[p] = mark{o.read, o.epoch}
	}
	l.bed, l.bedMade = b, generation
	l.tails.watch(l, b)
}

// rise ends the rest: the version reads by itself, for restAfter at least.
func (l *live) rise() {
	if l.bed != nil {
		l.active = l.Now()
		l.tails.leave(l)
		l.bed = nil
	}
}

// fetch asks for what comes behind the cursors, with a client that is made when there is none.
func (l *live) fetch(ctx context.Context, cursors []kafka.Cursor) ([]kafka.Fetched, error) {
	if err := l.openConsumer(); err != nil {
		return nil, err
	}
	return l.consumer.fetcher.Fetch(ctx, cursors)
}
