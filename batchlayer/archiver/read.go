package archiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

// tick is how long the reader waits when it has nothing to fetch, before it checks again what is due.
const tick = 250 * time.Millisecond

// read fetches until ctx ends.
func (a *Archiver) read(ctx context.Context) {
	defer func() { a.close() }()
	for ctx.Err() == nil {
		a.obey(ctx)
		cursors := a.cursors()
		if len(cursors) == 0 {
			a.rest(ctx)
		} else {
			for _, got := range a.fetch(ctx, cursors) {
				a.take(got)
			}
		}
		a.assign()
	}
}

// obey runs what was asked for.
func (a *Archiver) obey(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case f := <-a.control:
			f()
		default:
			return
		}
	}
}

// rest waits until something is asked for, at most a tick.
func (a *Archiver) rest(ctx context.Context) {
	timer := time.NewTimer(tick)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case f := <-a.control:
		f()
	}
}

// cursors are where to read on: nowhere while too many records are in memory.
func (a *Archiver) cursors() []kafka.Cursor {
	total := 0
	var out []kafka.Cursor
	for _, p := range a.parts {
		total += p.buffered
		if !p.busy {
			out = append(out, p.cursor())
		}
	}
	if total > 2*a.config.Memory {
		return nil
	}
	return out
}

// fetch asks the brokers. It ends early, with nothing, when something is asked for.
func (a *Archiver) fetch(ctx context.Context, cursors []kafka.Cursor) []kafka.Fetched {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	a.interruptBy(cancel)
	defer a.interruptBy(nil)
	if len(a.control) > 0 {
		return nil
	}
	got, err := a.fetcher.Fetch(limited, cursors)
	if err != nil && limited.Err() == nil {
		a.Log.Warn("archive: fetch", "error", err)
	}
	return got
}

func (a *Archiver) interruptBy(cancel context.CancelFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.interrupt = cancel
}

// take adds an answer to its partition.
func (a *Archiver) take(got kafka.Fetched) {
	p := a.parts[got.Partition]
	if p == nil || p.busy {
		return
	}
	if got.Err == nil {
		if err := p.take(got, a.config.Temp, a.Now()); err != nil {
			p.give(order{err: err})
		}
		return
	}
	f := p.faultOf(got.Err)
	var gap *kafka.GapError
	cut := errors.As(got.Err, &gap) && (gap.Cut || gap.Wanted > gap.Start)
	switch {
	case f.Kind == job.FaultNone: // it passes
	case p.waiting() && cut: // records in memory may be lost from the log: read again from the published position
		p.give(order{err: got.Err})
	case p.waiting():
		p.give(order{publish: true}) // records in memory are complete: publish them; the next fetch meets the fault again
	default:
		p.give(order{fault: f})
	}
}

// assign gives out what is to be done: files that are complete, row groups that are full, and when memory is short the
// largest.
func (a *Archiver) assign() {
	now := a.Now()
	total := 0
	var idle []*part
	for _, p := range a.parts {
		total += p.buffered
		switch {
		case p.busy:
		case p.ripe(now):
			p.give(order{publish: true})
		case p.buffered >= rowGroup:
			p.give(order{})
		default:
			idle = append(idle, p)
		}
	}
	if total <= a.config.Memory {
		return
	}
	slices.SortFunc(idle, func(x, y *part) int { return cmp.Compare(y.buffered, x.buffered) })
	for _, p := range idle {
		if total <= a.config.Memory/2 || p.buffered == 0 {
			return
		}
		total -= p.buffered
		p.give(order{})
	}
}

// join adds a partition to those that are read. It is called in the goroutine of Host.
func (a *Archiver) join(p *part) error {
	if a.fetcher == nil {
		client, err := kafka.NewClient(a.Kafka)
		if err != nil {
			return err
		}
		a.cluster = p.position.Cluster
		a.fetcher = kafka.NewFetcher(client, kafka.FetchConfig{Cluster: a.cluster, MaxAnswer: a.config.Memory / 2})
		a.close = func() { a.fetcher.Close(); client.Close() }
	}
	if p.position.Cluster != a.cluster {
		return fmt.Errorf("archive %s: it is of Kafka cluster %s, and these brokers are cluster %s", p.Partition,
			p.position.Cluster, a.cluster)
	}
	a.parts[p.Partition] = p
	return nil
}

// leave removes a partition. It is called in the goroutine of Host.
func (a *Archiver) leave(p *part) {
	if a.parts[p.Partition] == p {
		delete(a.parts, p.Partition)
	}
}
