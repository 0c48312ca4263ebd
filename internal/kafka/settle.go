package kafka

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// How long the cluster must repeat an answer before it is believed. Brokers learn of new and deleted topics, and of the
// log's end after a leader change, one after another.
const (
	goneAfter      = 3 * time.Second
	recreatedAfter = time.Second
	cutAfter       = 2 * time.Second
	holeAfter      = 2 * time.Second
)

// condition is a condition that the cluster may report of a partition for a moment although it does not hold.
type condition int

const (
	noCondition condition = iota
	topicGone
	otherTopic
	logCut
	logHole
)

// settle evaluates the answer for one partition.
func (f *Fetcher) settle(p *part, a *ask, leader int32, out []Fetched) []Fetched {
	switch {
	case a.err != nil:
		return f.settleError(p, a, leader, out)
	case !a.came: // throttled: the broker answered without data
		p.due = f.now().Add(backoff(1))
		return out
	case a.over > 0:
		return f.raise(p, a, out)
	case a.stuck:
		return f.fail(p, fmt.Errorf("fetch %s: the broker sent only batches that end before this offset", a), out)
	case a.again:
		p.alone = true
		return out
	case a.hole && !p.persists(logHole, f.now(), holeAfter):
		// a broker that is slow to read its data may answer like this too
		p.due, p.answered = f.now().Add(backoff(1)), f.call
		return out
	}
	p.failures, p.condition = 0, noCondition
	p.epoch = a.epoch
	p.stable = a.fetched.LastStableOffset
	p.next = a.next
	if a.hole {
		p.next = a.fetched.LastStableOffset
	}
	p.answered = f.call
	if p.next == a.offset && a.later {
		return out
	}
	if p.next > a.offset {
		p.limit, p.alone, p.least, p.served = f.config.MaxPartitionBytes, false, false, f.call
	}
	p.known = max(p.known, p.next)
	return append(out, Fetched{
		Partition: p.Partition, Records: a.fetched.Records, Next: p.next, LeaderEpoch: a.epoch, Bytes: a.bytes,
		LogStart: a.fetched.LogStartOffset, LastStable: a.fetched.LastStableOffset, End: a.fetched.HighWatermark,
	})
}

// raise increases the limit so that a truncated batch fits.
func (f *Fetcher) raise(p *part, a *ask, out []Fetched) []Fetched {
	limit := min(maxResponse(f.cl), math.MaxInt32)
	switch {
	case a.over > limit:
		return f.fail(p, &TooLargeError{Partition: p.Partition, Offset: a.offset, End: a.end, Size: a.over, Limit: limit},
			out)
	case a.over <= int64(a.limit):
		return f.fail(p, fmt.Errorf("fetch %s: a batch of %d bytes was truncated although the limit is %d", a, a.over,
			a.limit), out)
	}
	p.limit, p.condition = int32(a.over), noCondition
	return out
}

func (f *Fetcher) settleError(p *part, a *ask, leader int32, out []Fetched) []Fetched {
	var packed *kgo.ErrDecompressTooLarge
	switch {
	case errors.Is(a.err, kgo.ErrClientClosed):
		f.cancel()
		return out
	case errors.As(a.err, &packed):
		return f.fail(p, &TooLargeError{Partition: p.Partition, Offset: packed.Offset, End: a.end, Limit: math.MaxInt32}, out)
	case tooLargeToRead(a.err):
		return f.tooLarge(p, a, out)
	case outOfRange(a.err):
		return f.outOfRange(p, a, out)
	case Final(a.err): // the log was truncated below the cursor
		return f.fail(p, a.err, out)
	}
	p.wants = f.fresh + 1
	return f.fail(p, fmt.Errorf("fetch %s from broker %d: %w", a, leader, cause(explainLogin(f.cl, a.err))), out)
}

// tooLarge handles a response larger than the client reads. A request for this partition alone, and for one batch,
// shows whether it is the cause.
func (f *Fetcher) tooLarge(p *part, a *ask, out []Fetched) []Fetched {
	limit := maxResponse(f.cl)
	if !p.least {
		p.alone, p.least = true, true
		f.most = int32(limit / 2)
		return out
	}
	return f.fail(p, &TooLargeError{Partition: p.Partition, Offset: a.offset, Limit: limit}, out)
}

// outOfRange distinguishes a gap from an outdated answer. If the log ends before a cursor whose leader epoch is unknown
// (a gap was accepted), the fetcher waits for the log.
func (f *Fetcher) outOfRange(p *part, a *ask, out []Fetched) []Fetched {
	gap := &GapError{Partition: p.Partition, Wanted: a.offset, Start: a.log.From, End: a.log.To}
	switch {
	case a.logErr == nil && a.offset < a.log.From:
		return f.fail(p, gap, out)
	case a.logErr == nil && a.offset > a.log.To && (a.since >= 0 || a.epoch < 0) && p.persists(logCut, f.now(), cutAfter):
		return f.fail(p, gap, out)
	}
	p.wants = f.fresh + 1
	return f.fail(p, fmt.Errorf("fetch %s: %w", a, a.err), out)
}

// persists reports whether the same condition has lasted for d, and records its start.
func (p *part) persists(o condition, now time.Time, d time.Duration) bool {
	if p.condition != o {
		p.condition, p.conditionSince = o, now
	}
	return now.Sub(p.conditionSince) >= d
}

// fail returns an error and backs the partition off, also after a final error, because the caller may retry.
func (f *Fetcher) fail(p *part, err error, out []Fetched) []Fetched {
	p.failures++
	p.due = f.now().Add(backoff(p.failures))
	if p.condition == logHole { // after an error, observe the condition from the start: another leader may answer
		p.condition = noCondition
	}
	if Refused(err) {
		p.due = f.now().Add(refusedPause)
	}
	p.answered = f.call
	return append(out, Fetched{Partition: p.Partition, Next: p.next, LogStart: -1, LastStable: -1, End: -1, Err: err})
}

// refresh is one MetadataRequest in flight. Its goroutine owns it until done is closed.
type refresh struct {
	done  chan struct{}
	names map[string]bool // requested topics
	meta  metadata
	err   error
}

func (r *refresh) ended() bool { return isClosed(r.done) }

func (f *Fetcher) startRefresh() {
	r := &refresh{done: make(chan struct{}), names: make(map[string]bool)}
	var names []string
	for _, p := range f.order {
		if !r.names[p.Topic] {
			r.names[p.Topic] = true
			names = append(names, p.Topic)
		}
	}
	f.refresh = r
	f.group.Go(func() {
		f.run(r.done, func() { r.meta, r.err = requestMetadata(f.ctx, f.cl, names) })
	})
}

// settleRefresh adopts the leaders of a refresh and evaluates the partitions without a leader.
func (f *Fetcher) settleRefresh(r *refresh, out []Fetched) []Fetched {
	switch {
	case errors.Is(r.err, kgo.ErrClientClosed):
		f.cancel()
		return out
	case r.err == nil && otherCluster(f.config.Cluster, r.meta.cluster):
		r.err = &OtherClusterError{Want: f.config.Cluster, Now: r.meta.cluster}
	case r.err == nil:
		f.fresh++
		for name := range r.names {
			f.topics[name] = r.meta.topics[name] // a topic that the broker omitted has no partitions
		}
	}
	now := f.now()
	for _, p := range f.order {
		if _, ok := f.leader(p); ok || p.due.After(now) || !r.names[p.Topic] {
			continue
		}
		err := explainLogin(f.cl, r.err)
		if err == nil {
			err = p.verdict(f.topics[p.Topic], now)
		}
		if !Final(err) {
			err = fmt.Errorf("find the leader of %s: %w", p.Partition, cause(err))
		}
		out = f.fail(p, err, out)
	}
	return out
}

// otherCluster reports whether two ids belong to different clusters; an empty id is unknown.
func otherCluster(want, now string) bool { return want != "" && now != "" && want != now }

// verdict returns why a partition has no leader to fetch from.
func (p *part) verdict(t topicMeta, now time.Time) error {
	_, known := t.partition(p.ID)
	switch {
	case errors.Is(t.err, kerr.UnknownTopicOrPartition):
		if p.persists(topicGone, now, goneAfter) {
			return &MissingTopicError{Topic: p.Topic}
		}
		return t.err
	case t.err != nil:
		return t.err
	case otherID(t, p):
		if p.persists(otherTopic, now, recreatedAfter) {
			return &RecreatedError{Partition: p.Partition, Now: t.id}
		}
		return kerr.UnknownTopicID
	case !known:
		return kerr.UnknownTopicOrPartition
	}
	return errNoLeader
}

func outOfRange(err error) bool { return errors.Is(err, kerr.OffsetOutOfRange) }
func unsupported(err error) bool {
	return errors.Is(err, kerr.UnsupportedVersion) || errors.Is(err, kerr.InvalidRequest)
}

// tooLargeToRead recognises a response above the client's read limit. The client exports no error for it; a test guards
// the text.
func tooLargeToRead(err error) bool { return strings.Contains(err.Error(), "BrokerMaxReadBytes") }

func maxResponse(cl *kgo.Client) int64 {
	if v, ok := cl.OptValue(kgo.BrokerMaxReadBytes).(int32); ok {
		return int64(v)
	}
	return maxRead
}
