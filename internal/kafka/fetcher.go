package kafka

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// Cursor is where to fetch one partition from. LeaderEpoch is the leader's epoch under which the log was seen to reach up to
// Next, or up to Known when that is further; -1 when it never was. A log that has been cut off below since is a *GapError. The
// fetcher learns the epoch of the leader now by itself.
type Cursor struct {
	job.Partition
	Next        int64
	LeaderEpoch int32
	Known       int64
}

// Fetched is the answer for one partition.
type Fetched struct {
	job.Partition
	Records     []*kgo.Record // committed data records from the cursor on; no control records, no aborted ones
	Next        int64         // next offset to ask for; moves past markers and compacted offsets
	LeaderEpoch int32
	LogStart    int64 // the three are -1 with an Err
	LastStable  int64
	End         int64
	Bytes       int   // of keys and values
	Err         error // *GapError, *RecreatedError, *MissingTopicError, *TooLargeError are final (see Final); others pass and are backed off
}

// FetchConfig bounds a Fetcher. Zero fields mean the defaults.
type FetchConfig struct {
	MaxPartitionBytes int32 // default 1 MiB; a larger record batch still passes
	// MaxBytes and MaxAnswer are shared by the leaders: of what they send at once, default 16 MiB, and of what their compressed
	// batches unpack to, less the last of each, default 32 MiB.
	MaxBytes    int32
	MaxAnswer   int
	MaxUnpacked int           // of what one partition's compressed batches unpack to in one answer, less the last of them; default 8 MiB
	MaxWait     time.Duration // default 250 ms
}

// leastShare is what a leader is asked for, and may send unpacked, however many leaders there are.
const leastShare = 1 << 20

func (c FetchConfig) withDefaults() FetchConfig {
	if c.MaxPartitionBytes <= 0 {
		c.MaxPartitionBytes = 1 << 20
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 16 << 20
	}
	if c.MaxUnpacked <= 0 {
		c.MaxUnpacked = 8 << 20
	}
	if c.MaxAnswer <= 0 {
		c.MaxAnswer = 32 << 20
	}
	if c.MaxWait <= 0 {
		c.MaxWait = 250 * time.Millisecond
	}
	return c
}

// grace is how long a Fetch that has data waits for leaders that are still silent. What they answer later is not lost.
const grace = 20 * time.Millisecond

// Fetcher sends raw FetchRequests (see the package comment), one at a time to a leader. One goroutine owns it; the
// goroutines of its requests touch nothing but their own request.
type Fetcher struct {
	cl     *kgo.Client
	config FetchConfig
	now    func() time.Time
	unpack kgo.Decompressor
	ctx    context.Context // of requests in flight, which outlive a call of Fetch
	cancel context.CancelFunc
	group  sync.WaitGroup
	wake   chan struct{} // a request or a refresh has ended

	parts   map[job.Partition]*part
	order   []*part // who waited longest for records comes first; rotates, so that each of them comes first in its turn
	topics  map[string]topicMeta
	fresh   int // how many refreshes have succeeded
	flights map[int32]*flight
	refresh *refresh
	call    int   // number of the current Fetch
	most    int32 // of what leaders send at once, when the client turned out to read no more; 0: that is not so
}

// part is what the fetcher knows of one partition.
type part struct {
	job.Partition
	next     int64
	epoch    int32 // of the leader under which known was seen; -1: none
	given    int32 // the caller's, as of its last call
	known    int64
	stable   int64 // last stable offset as last answered
	limit    int32 // raised for a batch over MaxPartitionBytes
	alone    bool  // asked in a request of its own
	least    bool  // and for as little as the broker gives
	served   int   // number of the Fetch that handed out its last records
	wants    int   // usable from this number of refreshes on
	failures int
	due      time.Time // not asked before
	odd      oddity    // what the cluster says that may pass
	oddSince time.Time // since when it says so
	answered int       // number of the Fetch that handed out its last answer
	listed   int       // number of the Fetch that listed it
}

// NewFetcher makes a fetcher over a client that nothing else fetches with. Close ends it.
func NewFetcher(cl *kgo.Client, c FetchConfig) *Fetcher {
	ctx, cancel := context.WithCancel(context.Background())
	return &Fetcher{
		cl: cl, config: c.withDefaults(), now: time.Now, unpack: kgo.DefaultDecompressor(), ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1),
		parts: make(map[job.Partition]*part), topics: make(map[string]topicMeta), flights: make(map[int32]*flight),
	}
}

// Bound replaces how much leaders may send at once and what that may unpack to, from the next request on. Zero fields mean the
// defaults; the others of c are not looked at.
func (f *Fetcher) Bound(c FetchConfig) {
	c = c.withDefaults()
	f.config.MaxBytes, f.config.MaxAnswer, f.config.MaxUnpacked = c.MaxBytes, c.MaxAnswer, c.MaxUnpacked
}

// Close ends the requests in flight and waits for their goroutines. The client stays open.
func (f *Fetcher) Close() {
	f.cancel()
	f.group.Wait()
}

// Fetch asks every leader of the cursors and returns what came: when all have answered, or soon after data has come. It
// returns nothing when all stay silent for twice MaxWait. The cursors may differ from call to call. Leader changes, lost
// connections and missing leaders are handled inside and show as a passing Err. The error is ctx's, or the client is closed.
func (f *Fetcher) Fetch(ctx context.Context, cursors []Cursor) ([]Fetched, error) {
	f.follow(cursors)
	deadline := f.now().Add(2 * f.config.MaxWait)
	timer := time.NewTimer(2 * f.config.MaxWait)
	defer timer.Stop()
	var out []Fetched
	hurry := false
	for {
		out = f.collect(out)
		if err := errors.Join(ctx.Err(), f.closed()); err != nil {
			return nil, err
		}
		f.launch(false)
		if len(out) > 0 && !f.owing() || !f.now().Before(deadline) {
			f.launch(true)
			return out, nil
		}
		if useful(out) && !hurry {
			hurry = true
			deadline = f.now().Add(grace)
		}
		timer.Reset(f.nap(deadline))
		select {
		case <-f.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

func (f *Fetcher) closed() error {
	if f.ctx.Err() != nil {
		return errClosed
	}
	return nil
}

// follow takes over the caller's cursors. A cursor that moved on its own makes an answer already asked for void.
func (f *Fetcher) follow(cursors []Cursor) {
	f.call++
	for _, c := range cursors {
		p := f.parts[c.Partition]
		if p == nil {
			p = &part{Partition: c.Partition, next: -1, limit: f.config.MaxPartitionBytes}
			f.parts[c.Partition] = p
			f.order = append(f.order, p)
		}
		if p.next != c.Next || c.LeaderEpoch != p.given && c.LeaderEpoch != p.epoch {
			p.epoch, p.known = c.LeaderEpoch, c.Next
			p.next, p.stable, p.failures, p.due, p.odd = c.Next, 0, 0, time.Time{}, nothingOdd
		}
		p.known, p.given = max(p.known, c.Known), c.LeaderEpoch
		p.listed = f.call
	}
	kept := f.order[:0]
	for _, p := range f.order {
		if p.listed == f.call {
			kept = append(kept, p)
		} else {
			delete(f.parts, p.Partition)
		}
	}
	clear(f.order[len(kept):])
	f.order = kept
	if n := len(kept); n > 1 {
		first := kept[0]
		copy(kept, kept[1:])
		kept[n-1] = first
	}
}

// collect takes in whatever has ended.
func (f *Fetcher) collect(out []Fetched) []Fetched {
	if f.refresh != nil && f.refresh.ended() {
		r := f.refresh
		f.refresh = nil
		out = f.settleRefresh(r, out)
	}
	for leader, fl := range f.flights {
		if !fl.ended() {
			continue
		}
		delete(f.flights, leader)
		for i := range fl.asks {
			a := &fl.asks[i]
			// Not listed any more, or moved by the caller: the answer is to a question that nobody asks now.
			if p := f.parts[a.Partition]; p != nil && p.next == a.offset {
				out = f.settle(p, a, leader, out)
			}
		}
	}
	return out
}

// launch sends a request to every leader that has none in flight and has partitions to ask for: those without an answer in
// this call, or, ahead of the next call, those whose log is known to hold more.
func (f *Fetcher) launch(ahead bool) {
	now := f.now()
	slices.SortStableFunc(f.order, func(a, b *part) int { return cmp.Compare(a.served, b.served) })
	stale := false
	byLeader := make(map[int32]*flight)
	leaders := make(map[int32]bool)
	for _, p := range f.order {
		if meta, ok := f.leader(p); ok {
			leaders[meta.leader] = true
		}
		if p.due.After(now) || ahead != (p.answered == f.call) || ahead && (p.failures > 0 || p.next >= p.stable) {
			continue
		}
		meta, ok := f.leader(p)
		if !ok {
			stale = true
			continue
		}
		if f.flights[meta.leader] != nil {
			continue
		}
		fl := byLeader[meta.leader]
		if fl == nil {
			fl = &flight{done: make(chan struct{}), leader: meta.leader, alone: p.alone, least: p.least}
			byLeader[meta.leader] = fl
		} else if fl.alone || p.alone {
			continue
		}
		fl.asks = append(fl.asks, ask{
			Partition: p.Partition, id: f.topics[p.Topic].id, offset: p.next, limit: p.limit,
			epoch: meta.epoch, since: p.epoch, known: p.known,
		})
	}
	most := f.config.MaxBytes
	if f.most > 0 {
		most = min(most, f.most)
	}
	for leader, fl := range byLeader {
		fl.maxBytes = share(most, len(leaders))
		fl.maxAnswer, fl.maxUnpacked = share(f.config.MaxAnswer, len(leaders)), f.config.MaxUnpacked
		f.flights[leader] = fl
		f.group.Go(func() { f.run(fl.done, func() { f.fly(fl) }) })
	}
	if stale && f.refresh == nil {
		f.startRefresh()
	}
}

// share is a leader's part of a bound over all of them.
func share[T int | int32](whole T, leaders int) T {
	return max(whole/T(leaders), min(whole, leastShare)) //nolint:gosec // brokers are few
}

// run does the work of one goroutine and says that it has ended.
func (f *Fetcher) run(done chan struct{}, work func()) {
	work()
	close(done)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// leader is where to ask for p, unless that has to be learned first.
func (f *Fetcher) leader(p *part) (partitionMeta, bool) {
	t, ok := f.topics[p.Topic]
	if !ok || f.fresh < p.wants || t.err != nil || otherID(t, p) {
		return partitionMeta{}, false
	}
	m, ok := t.partition(p.ID)
	return m, ok && m.leader >= 0
}

// otherID says that the name is now another topic's. Brokers that give no id, as some do in the middle of an upgrade, do not say so.
func otherID(t topicMeta, p *part) bool {
	return t.id != p.TopicID && t.id != job.TopicID{} && p.TopicID != job.TopicID{} && t.id != nameID(p.Topic)
}

// owing says whether a partition that may be asked has no answer in this call yet.
func (f *Fetcher) owing() bool {
	now := f.now()
	for _, p := range f.order {
		if p.answered != f.call && !p.due.After(now) {
			return true
		}
	}
	return false
}

// nap is how long there is nothing to do but wait for answers: until the deadline or the end of the first back-off.
func (f *Fetcher) nap(deadline time.Time) time.Duration {
	now := f.now()
	for _, p := range f.order {
		if p.answered != f.call && p.due.After(now) && p.due.Before(deadline) {
			deadline = p.due
		}
	}
	return deadline.Sub(now)
}

// useful says whether an answer holds something that the caller should not wait for.
func useful(out []Fetched) bool {
	for i := range out {
		if len(out[i].Records) > 0 || out[i].Err != nil {
			return true
		}
	}
	return false
}
