package speedlayer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
)

// live is the following mode of one run. Its loop goroutine owns all of it but what mu guards.
type live struct {
	*run
	consumer *consumer // nil: nothing is read
	batching *batching // nil: nothing is computed
	advice   *advice

	bed     *bed      // what is watched while the version rests; nil: it reads by itself
	bedMade int       // the generation of what is held for which it was made
	active  time.Time // when something was read, or something woke the version

	owned  map[job.Partition]*owned
	skip   map[job.Partition]map[int64]format.Reject // records beyond processing that the query found
	limit  int                                       // records of a batch; less after a batch that failed
	turns  int                                       // batches of one partition alone so far
	doubt  bool                                      // the outcome of a commit is unknown: claim again first
	tries  int                                       // commits that failed in a row
	agents []string                                  // that share the work, as known last
	share  share

	shunned map[job.Partition]time.Time // given up because fetches failed, and when

	mu         sync.Mutex
	held       claims  // what the renewal prolongs
	renewal    renewal // the last one
	renewed    int     // how many were begun
	generation int     // of what is held and known of it
	clean      *int64  // digest of the rows when they were what is held and known; nil: they were not, or are not compared yet
	seen       *seen   // by the last look; nil: the loop has taken it
	seenAt     time.Time

	differs chan struct{} // a look found that the rows are not what is held and known
}

// renewal is the result of one renewal.
type renewal struct {
	number int
	asked  claims
	got    map[job.Partition]heldPosition
}

const noLimit = math.MaxInt32

// follow consumes the version's partitions until the version no longer asks for it.
func (r *run) follow(ctx context.Context) error {
	if r.broken { // nothing is claimed until it compiles
		if err := r.compile(ctx); err != nil {
			return err
		}
		r.broken = false
	}
	l := &live{
		run: r, owned: map[job.Partition]*owned{}, skip: map[job.Partition]map[int64]format.Reject{},
		limit: r.most, held: claims{}, agents: []string{r.Agent}, shunned: map[job.Partition]time.Time{},
		differs: make(chan struct{}, 1),
	}
	l.follows.Add(1)
	defer l.follows.Add(-1)
	defer l.close()
	if err := l.open(); err != nil {
		return fmt.Errorf("start to follow the topics of %s: %w", r.ref, err)
	}
	r.started()
	var broken error
	defer func() { r.broken = broken != nil }()
	g, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g.Go(func() error {
		defer stop(errMoved) // work is over: so are the others
		return l.loop(ctx)
	})
	g.Go(func() error {
		return r.each(ctx, l.nextBeat, func(ctx context.Context) error {
			err := l.noted(ctx, looking, l.attend)
			if errors.Is(err, errMoved) {
				stop(errMoved)
				return nil
			}
			return err
		})
	})
	g.Go(func() error {
		return r.each(ctx, l.nextDifference, func(ctx context.Context) error { return l.noted(ctx, renewing, l.renew) })
	})
	g.Go(func() error {
		broken = r.prepare(ctx)
		return broken
	})
	return g.Wait()
}

// prepare compiles the query of a version that rests, so that its first record does not wait for that and a query that
// does not compile is seen before. One version of an agent is compiled at a time.
func (r *run) prepare(ctx context.Context) error {
	if acquire(ctx, r.compiles) != nil {
		return nil
	}
	err := r.compile(ctx)
	<-r.compiles
	return unlessDone(ctx, err)
}

func (l *live) open() (err error) {
	l.advice, err = newAdvice(l.run)
	return err
}

func (l *live) close() {
	l.rise()
	l.letGo()
	if l.advice != nil {
		l.advice.close()
	}
}

// every is how long records are gathered for one commit.
func (l *live) every() time.Duration {
	return cmp.Or(time.Duration(l.pace.Load()), 250*time.Millisecond)
}

// loop claims, reads and commits until ctx is done, then gives everything up.
func (l *live) loop(ctx context.Context) error {
	defer l.giveUpAll(ctx)
	var balanced time.Time
	for ctx.Err() == nil {
		l.notice()
		if now := l.Now(); now.Sub(balanced) >= l.tick() && !l.doubt {
			looked, err := l.balance(ctx)
			switch {
			case err == nil:
				l.troubles.works(claiming)
			case ctx.Err() == nil:
				l.quiet.warn("positions cannot be claimed", err)
				l.failed(ctx, claiming, reason.ClaimFails, err)
			}
			if looked {
				balanced = now
				l.bound()
			}
		}
		if l.mayRest() {
			l.rest(ctx)
			continue
		}
		l.rise()
		l.gather(ctx)
		if ctx.Err() != nil {
			break
		}
		l.step(ctx)
	}
	return nil
}

// step commits what is in hand and writes the faults that no uncommitted record precedes. What fails is tried again.
func (l *live) step(ctx context.Context) {
	err := l.flush(ctx)
	if err == nil {
		err = errors.Join(l.writeFaults(ctx), l.endFaults(ctx))
	}
	switch {
	case err == nil:
		l.tries = 0
		l.quiet.over(cannotCommit)
		l.troubles.works(committing)
	case ctx.Err() != nil:
	default:
		l.tries++
		l.Metrics.CommitRetries.Add(1)
		if l.tries > 1 || !pg.Retryable(err) {
			l.quiet.warn(cannotCommit, err)
		}
		l.failed(ctx, committing, reason.CommitFails, err)
		_ = retry.Sleep(ctx, retry.Backoff(l.tries, 20*time.Millisecond, 5*time.Second))
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
				_ = retry.Sleep(ctx, min(l.every(), l.tick(), 50*time.Millisecond))
			}
			return
		}
		fetched, err := l.fetch(ctx, cursors)
		if err != nil {
			if ctx.Err() == nil {
				l.quiet.warn(cannotFetch, err)
				l.failed(ctx, fetching(""), fetchFails("its topics"), err)
				_ = retry.Sleep(ctx, l.tick())
			}
			return
		}
		l.troubles.works(fetching(""))
		l.absorb(ctx, fetched)
		now := l.Now()
		if first.IsZero() && l.anyPending() {
			first = now
			l.hit(faultpoint.LiveFetched)
		}
		full := len(l.cursors()) < len(cursors)
		if ctx.Err() != nil || full || l.anyHeld() || (!first.IsZero() && now.Sub(first) >= l.patience()) ||
			(first.IsZero() && now.Sub(began) >= l.tick()) {
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
	archived := l.archived()
	for _, o := range l.sorted() {
		if o.fetchable(bound, archived) && held < memory {
			out = append(out, kafka.Cursor{Partition: o.partition, Next: o.read, LeaderEpoch: o.epoch})
		}
	}
	return out
}

func (l *live) sorted() []*owned {
	return slices.SortedFunc(maps.Values(l.owned),
		func(a, b *owned) int { return comparePartitions(a.partition, b.partition) })
}

func comparePartitions(a, b job.Partition) int {
	if c := bytes.Compare(a.TopicID[:], b.TopicID[:]); c != 0 { // as PostgreSQL orders them
		return c
	}
	return int(a.ID) - int(b.ID)
}

// anyHeld reports whether a hold stopped us. We poll for its end often, because readers wait for it.
func (l *live) anyHeld() bool {
	for _, o := range l.owned {
		if o.hold != nil {
			return true
		}
	}
	return false
}

// anyPending reports whether there is something to commit now.
func (l *live) anyPending() bool {
	now := l.Now()
	for _, o := range l.owned {
		if o.pending() && !o.due.After(now) || o.faulty() {
			return true
		}
	}
	return false
}

func (l *live) absorb(ctx context.Context, fetched []kafka.Fetched) {
	for _, f := range fetched {
		o := l.owned[f.Partition]
		if o == nil {
			continue
		}
		o.answered(f.Err, l.Now())
		if o.halted {
			o.answers = f.Err == nil
			continue
		}
		name := o.partition.String()
		if f.Err == nil {
			if len(f.Records) > 0 || f.Next > o.read {
				l.active = l.Now()
			}
			l.troubles.works(fetching(name))
			o.absorb(f)
			continue
		}
		l.active = l.Now()
		if fault := faultOf(f.Err, o.read); fault.Kind != job.FaultNone {
			l.troubles.works(fetching(name))
			o.fault = fault
			continue
		}
		l.quiet.warn(cannotFetch+" of "+name, f.Err)
		l.failed(ctx, fetching(name), fetchFails(name), f.Err)
	}
}
