package speedlayer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
)

// live is the following mode of one run. Its loop goroutine owns all of it but what mu guards.
type live struct {
	*run
	client  *kgo.Client
	fetcher *kafka.Fetcher
	session *query.Session
	decoder *format.Decoder
	advice  *advice

	owned  map[job.Partition]*owned
	skip   map[job.Partition]map[int64]format.Reject // records beyond processing that the query found
	limit  int                                       // records of a batch; less after a batch that failed
	doubt  bool                                      // the outcome of a commit is unknown: claim again first
	failed int                                       // commits that failed in a row
	share  share

	mu      sync.Mutex
	held    claims  // what the renewal prolongs
	renewal renewal // the last one
	renewed int     // how many were begun
}

// renewal is what a renewal found.
type renewal struct {
	number int
	asked  claims
	got    map[job.Partition]heldPosition
}

const noLimit = math.MaxInt32

// follow consumes the version's partitions until the version no longer asks for it.
func (r *run) follow(ctx context.Context) error {
	l := &live{
		run: r, owned: map[job.Partition]*owned{}, skip: map[job.Partition]map[int64]format.Reject{},
		limit: r.most, held: claims{},
	}
	l.follows.Add(1)
	defer l.follows.Add(-1)
	defer l.close()
	if err := l.open(ctx); err != nil {
		return fmt.Errorf("start to follow the topics of %s: %w", r.ref, err)
	}
	return r.during(ctx, following, r.tick(), l.renew, func(ctx context.Context) error { return l.loop(ctx) })
}

func (l *live) open(ctx context.Context) (err error) {
	if l.client, err = kafka.NewClient(l.Kafka, kgo.WithHooks(throttled{metrics: l.Metrics})); err != nil {
		return err
	}
	l.fetcher = kafka.NewFetcher(l.client, l.followFetches(min(max(l.every(), 10*time.Millisecond), 250*time.Millisecond)))
	if l.decoder, err = format.New(l.spec.Source, l.compiled.FieldsFor(l.lanes)); err != nil {
		return err
	}
	if l.advice, err = newAdvice(l.run); err != nil {
		return err
	}
	l.session, err = query.Open(ctx, l.followSession())
	return err
}

func (l *live) close() {
	if l.session != nil {
		if err := l.session.Close(); err != nil {
			l.quiet.warn("a query session does not close", err)
		}
	}
	if l.decoder != nil {
		l.decoder.Close()
	}
	if l.advice != nil {
		l.advice.close()
	}
	if l.client != nil {
		l.fetcher.Close()
		l.client.Close()
	}
}

// every is how long records are gathered for one commit.
func (l *live) every() time.Duration { return or(time.Duration(l.pace.Load()), 250*time.Millisecond) }

// loop claims, reads and commits until ctx is done, then gives everything up.
func (l *live) loop(ctx context.Context) error {
	defer l.giveUpAll(ctx)
	var balanced time.Time
	for ctx.Err() == nil {
		l.notice()
		if now := l.Now(); now.Sub(balanced) >= l.tick() && !l.doubt {
			balanced = now
			l.bound()
			if err := l.balance(ctx); err != nil && ctx.Err() == nil {
				l.quiet.warn("positions cannot be claimed", err)
			}
		}
		l.gather(ctx)
		if ctx.Err() != nil {
			break
		}
		l.step(ctx)
	}
	return nil
}

// bound gives the query session and the fetcher their share of the memory as it is now: other versions come and go.
func (l *live) bound() {
	if err := l.session.Bound(l.followSession()); err != nil {
		l.quiet.warn("a query session does not close", err)
	}
	l.fetcher.Bound(l.followFetches(0))
}

// step commits what is in hand and writes the faults that nothing stands before. What fails is tried again.
func (l *live) step(ctx context.Context) {
	err := l.flush(ctx)
	if err == nil {
		err = l.writeFaults(ctx)
	}
	switch {
	case err == nil:
		l.failed = 0
		l.quiet.over(cannotCommit)
	case ctx.Err() != nil:
	default:
		l.failed++
		l.Metrics.CommitRetries.Add(1)
		if l.failed > 1 || !pg.Retryable(err) {
			l.quiet.warn(cannotCommit, err)
		}
		_ = wait(ctx, backoff(l.failed, 20*time.Millisecond, 5*time.Second))
	}
}

const cannotCommit = "a commit failed and is tried again"

// patience is how long records are gathered now. Far behind, larger batches touch each key less often.
func (l *live) patience() time.Duration {
	for _, o := range l.owned {
		if o.behind > farBehind && o.hold == nil {
			return max(l.every(), time.Second)
		}
	}
	return l.every()
}

// farBehind is how many unread offsets of a partition make throughput matter more than the age of what is served.
const farBehind = 20_000

// gather reads until there is enough for a commit: live.every has passed since the first record, or memory is full.
func (l *live) gather(ctx context.Context) {
	var first time.Time
	began := l.Now()
	for {
		cursors := l.cursors()
		if len(cursors) == 0 {
			if !l.anyPending() {
				_ = wait(ctx, min(l.every(), l.tick(), 50*time.Millisecond))
			}
			return
		}
		fetched, err := l.fetcher.Fetch(ctx, cursors)
		if err != nil {
			if ctx.Err() == nil {
				l.quiet.warn(cannotFetch, err)
				_ = wait(ctx, l.tick())
			}
			return
		}
		l.absorb(fetched)
		now := l.Now()
		if first.IsZero() && l.anyPending() {
			first = now
			l.hit(faultpoint.LiveFetched)
		}
		full := len(l.cursors()) < len(cursors)
		if ctx.Err() != nil || full || l.anyHeld() || (!first.IsZero() && now.Sub(first) >= l.patience()) || (first.IsZero() && now.Sub(began) >= l.tick()) {
			return
		}
	}
}

// cursors are the partitions to read on. When memory is full they wait for a commit.
func (l *live) cursors() []kafka.Cursor {
	memory, held := l.fetchMemory(), 0
	for _, o := range l.owned {
		held += o.bytes
	}
	bound := max(memory/max(len(l.owned), 1), 1<<20)
	var out []kafka.Cursor
	for _, o := range l.sorted() {
		if o.fetchable(bound) && held < memory {
			out = append(out, kafka.Cursor{Partition: o.partition, Next: o.read, LeaderEpoch: o.epoch})
		}
	}
	return out
}

func (l *live) sorted() []*owned {
	return slices.SortedFunc(maps.Values(l.owned), func(a, b *owned) int { return comparePartitions(a.partition, b.partition) })
}

func comparePartitions(a, b job.Partition) int {
	if c := bytes.Compare(a.TopicID[:], b.TopicID[:]); c != 0 { // as PostgreSQL orders them
		return c
	}
	return int(a.ID) - int(b.ID)
}

// anyHeld says that a hold stopped us: its end is looked for often, because readers wait behind it.
func (l *live) anyHeld() bool {
	for _, o := range l.owned {
		if o.hold != nil {
			return true
		}
	}
	return false
}

func (l *live) anyPending() bool {
	for _, o := range l.owned {
		if o.pending() || o.faulty() {
			return true
		}
	}
	return false
}

func (l *live) absorb(fetched []kafka.Fetched) {
	for _, f := range fetched {
		o := l.owned[f.Partition]
		if o == nil {
			continue
		}
		if f.Err == nil {
			o.absorb(f)
			continue
		}
		if fault := faultOf(f.Err, o.read); fault.Kind != job.FaultNone {
			o.fault = fault
			continue
		}
		l.quiet.warn(cannotFetch+" of "+o.partition.String(), f.Err)
	}
}

// writeFaults writes the faults that everything in front of them is committed for.
func (l *live) writeFaults(ctx context.Context) error {
	var all error
	for _, o := range l.owned {
		if !o.faulty() {
			continue
		}
		written, err := l.writeFault(ctx, o)
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		l.halt(o)
		if written {
			l.Metrics.Faults.Add(1)
			l.log.Error("a partition cannot go on", "topic", o.partition.Topic, "partition", o.partition.ID, "fault", o.fault.Kind, "detail", o.fault.Detail)
		}
	}
	return all
}
