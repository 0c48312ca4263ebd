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

// Cursor is the position to fetch one partition from. LeaderEpoch is the leader epoch under which the log was seen to
// reach Next, or Known if that is larger; -1 if it never was. A log that was truncated below that offset since is
// reported as a *GapError. The fetcher learns the current leader's epoch by itself.
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
	Next        int64         // next offset to fetch; skips markers and compacted offsets
	LeaderEpoch int32
	LogStart    int64 // this and the next two are -1 if Err is set
	LastStable  int64
	End         int64
	Bytes       int // of keys and values
	// *GapError, *RecreatedError, *MissingTopicError and *TooLargeError are final (see Final); other errors are
	// temporary and backed off
	Err error
}

// FetchConfig bounds a Fetcher. Zero fields mean the defaults.
type FetchConfig struct {
	MaxPartitionBytes int32 // default 1 MiB; a single larger record batch is still fetched
	// MaxBytes and MaxAnswer are shared by all leaders. MaxBytes bounds what they send at once, default 16 MiB.
	// MaxAnswer bounds the uncompressed size of their batches, not counting each leader's last batch, default 32 MiB.
	MaxBytes  int32
	MaxAnswer int
	// uncompressed size of one partition's batches in one answer, not counting the last; default 8 MiB
	MaxUnpacked int
	MaxWait     time.Duration // default 250 ms
	// Cluster is the id of the cluster that the cursors' offsets belong to. Answers of another cluster are ignored and
	// reported as a temporary *OtherClusterError. Empty: any cluster.
	Cluster string
}

// leastShare is the minimum number of bytes requested from a leader, and the minimum uncompressed size allowed,
// regardless of the number of leaders.
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

// grace is how long a Fetch that has data waits for leaders that have not answered yet. Later answers are not lost.
const grace = 20 * time.Millisecond

// Fetcher sends raw FetchRequests (see the package comment), one at a time to each leader. One goroutine owns it; the
// goroutines of its requests access only their own request.
type Fetcher struct {
	cl     *kgo.Client
	config FetchConfig
	now    func() time.Time
	unpack kgo.Decompressor
	ctx    context.Context // of requests in flight, which outlive a call of Fetch
	cancel context.CancelFunc
	group  sync.WaitGroup
	wake   chan struct{} // signals that a request or a refresh has ended

	parts   map[job.Partition]*part
	order   []*part // by time since the last records, longest first; rotates, so that each part gets its turn
	topics  map[string]topicMeta
	fresh   int // number of refreshes that succeeded
	flights map[int32]*flight
	refresh *refresh
	call    int   // number of the current Fetch
	most    int32 // bytes that leaders may send at once after the client proved unable to read more; 0: no such limit
}

// part is the state of one partition.
type part struct {
	job.Partition
	next           int64
	epoch          int32 // leader epoch under which known was seen; -1: none
	given          int32 // the caller's epoch, as of its last call
	known          int64
	stable         int64 // last stable offset in the latest answer
	limit          int32 // raised for a batch larger than MaxPartitionBytes
	alone          bool  // fetched in a request of its own
	least          bool  // and with the smallest byte limit
	served         int   // number of the Fetch that last returned records of it
	wants          int   // usable from this number of refreshes on
	failures       int
	due            time.Time // not fetched before
	condition      condition // temporary condition that the cluster reports
	conditionSince time.Time // since when it reports the condition
	answered       int       // number of the Fetch that last returned an answer for it
	listed         int       // number of the Fetch that last listed it
}

// NewFetcher creates a fetcher on a client that is used for no other fetches. Close ends it.
func NewFetcher(cl *kgo.Client, c FetchConfig) *Fetcher {
	ctx, cancel := context.WithCancel(context.Background())
	return &Fetcher{
		cl: cl, config: c.withDefaults(), now: time.Now, unpack: kgo.DefaultDecompressor(), ctx: ctx, cancel: cancel,
		wake:  make(chan struct{}, 1),
		parts: make(map[job.Partition]*part), topics: make(map[string]topicMeta), flights: make(map[int32]*flight),
	}
}

// Bound replaces MaxBytes and MaxAnswer from the next request on. Zero fields mean the defaults; other fields of c are
// ignored.
func (f *Fetcher) Bound(c FetchConfig) {
	c = c.withDefaults()
	f.config.MaxBytes, f.config.MaxAnswer, f.config.MaxUnpacked = c.MaxBytes, c.MaxAnswer, c.MaxUnpacked
}

// Close ends the requests in flight and waits for their goroutines. The client stays open.
func (f *Fetcher) Close() {
	f.cancel()
	f.group.Wait()
}

// Fetch fetches from every leader of the cursors. It returns when all have answered, or soon after data has arrived,
// and returns nothing if none answers within twice MaxWait. The cursors may differ from call to call. Leader changes,
// lost connections and missing leaders are handled and reported as temporary errors of the partitions. The returned
// error is ctx's, or reports that the client is closed.
func (f *Fetcher) Fetch(ctx context.Context, cursors []Cursor) ([]Fetched, error) {
	return f.fetch(ctx, cursors, 2*f.config.MaxWait)
}

// Poll is a Fetch that does not wait: it sends due requests and returns the answers that have arrived, also to earlier
// calls.
func (f *Fetcher) Poll(ctx context.Context, cursors []Cursor) ([]Fetched, error) {
	return f.fetch(ctx, cursors, 0)
}

func (f *Fetcher) fetch(ctx context.Context, cursors []Cursor, wait time.Duration) ([]Fetched, error) {
	f.follow(cursors)
	deadline := f.now().Add(wait)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var out []Fetched
	hurry := false
	for {
		out = f.collect(out)
		if err := errors.Join(ctx.Err(), f.closed()); err != nil {
			return nil, err
		}
		f.launch(false)
		if len(out) > 0 && !f.unanswered() || !f.now().Before(deadline) {
			f.launch(true)
			return out, nil
		}
		if useful(out) && !hurry {
			hurry = true
			deadline = f.now().Add(grace)
		}
		timer.Reset(f.waitTime(deadline))
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

// follow adopts the caller's cursors. If the caller moved a cursor itself, a pending answer for it becomes void.
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
			p.next, p.stable, p.failures, p.due, p.condition = c.Next, 0, 0, time.Time{}, noCondition
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

// collect processes every request that has ended.
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
			// The caller no longer lists the partition, or moved its cursor: the answer is obsolete.
			if p := f.parts[a.Partition]; p != nil && p.next == a.offset {
				out = f.settle(p, a, leader, out)
			}
		}
	}
	return out
}

// launch sends a request to every leader that has none in flight and has due partitions: those without an answer in
// this call or, if ahead is set, those whose log is known to hold more.
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

// share returns one leader's share of a bound for all leaders.
func share[T int | int32](whole T, leaders int) T {
	return max(whole/T(leaders), min(whole, leastShare)) //nolint:gosec // brokers are few
}

// run does the work of one goroutine and signals that it has ended.
func (f *Fetcher) run(done chan struct{}, work func()) {
	work()
	close(done)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// leader returns the leader of p, or false if the metadata has to be refreshed first.
func (f *Fetcher) leader(p *part) (partitionMeta, bool) {
	t, ok := f.topics[p.Topic]
	if !ok || f.fresh < p.wants || t.err != nil || otherID(t, p) {
		return partitionMeta{}, false
	}
	m, ok := t.partition(p.ID)
	return m, ok && m.leader >= 0
}

// otherID reports whether the name now belongs to another topic. Brokers that return no id, as some do during an
// upgrade, give no evidence.
func otherID(t topicMeta, p *part) bool {
	return t.id != p.TopicID && t.id != job.TopicID{} && p.TopicID != job.TopicID{} && t.id != nameID(p.Topic)
}
