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

// How long the cluster must keep saying so before it is believed: brokers learn of new and deleted topics, and of the end
// of the log after a change of leader, one after the other.
const (
	goneAfter      = 3 * time.Second
	recreatedAfter = time.Second
	cutAfter       = 2 * time.Second
	holeAfter      = 2 * time.Second
)

// oddity is something that the cluster may say of a partition for a moment, without its being so.
type oddity int

const (
	nothingOdd oddity = iota
	topicGone
	otherTopic
	logCut
	logHole
)

// settle judges the answer for one partition.
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
		return f.fail(p, fmt.Errorf("fetch %s: the broker sent batches that end before it", a), out)
	case a.again:
		p.alone = true
		return out
	case a.hole && !p.stays(logHole, f.now(), holeAfter): // a broker that is slow to find its data may answer so too
		p.due, p.answered = f.now().Add(backoff(1)), f.call
		return out
	}
	p.failures, p.odd = 0, nothingOdd
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

// raise asks for enough to take in a batch that came cut off.
func (f *Fetcher) raise(p *part, a *ask, out []Fetched) []Fetched {
	limit := min(maxResponse(f.cl), math.MaxInt32)
	switch {
	case a.over > limit:
		return f.fail(p, &TooLargeError{Partition: p.Partition, Offset: a.offset, Size: a.over, Limit: limit}, out)
	case a.over <= int64(a.limit):
		return f.fail(p, fmt.Errorf("fetch %s: a batch of %d bytes came cut off below a limit of %d", a, a.over, a.limit), out)
	}
	p.limit, p.odd = int32(a.over), nothingOdd
	return out
}

func (f *Fetcher) settleError(p *part, a *ask, leader int32, out []Fetched) []Fetched {
	var packed *kgo.ErrDecompressTooLarge
	switch {
	case errors.Is(a.err, kgo.ErrClientClosed):
		f.cancel()
		return out
	case errors.As(a.err, &packed):
		return f.fail(p, &TooLargeError{Partition: p.Partition, Offset: packed.Offset, Limit: math.MaxInt32}, out)
	case tooLargeToRead(a.err):
		return f.tooLarge(p, a, out)
	case outOfRange(a.err):
		return f.outOfRange(p, a, out)
	case Final(a.err): // the log was cut off below the cursor
		return f.fail(p, a.err, out)
	}
	p.wants = f.fresh + 1
	return f.fail(p, fmt.Errorf("fetch %s from broker %d: %w", a, leader, cause(explainLogin(f.cl, a.err))), out)
}

// tooLarge handles a response over what the client reads: a request for this partition alone, and for one batch, decides
// whether it is the cause.
func (f *Fetcher) tooLarge(p *part, a *ask, out []Fetched) []Fetched {
	limit := maxResponse(f.cl)
	if !p.least {
		p.alone, p.least = true, true
		f.most = int32(limit / 2)
		return out
	}
	return f.fail(p, &TooLargeError{Partition: p.Partition, Offset: a.offset, Limit: limit}, out)
}

// outOfRange tells a gap from an answer that was out of date when it came. A log that ends before a cursor of which nobody knows
// under which leader it was there (a gap was accepted) is waited for.
func (f *Fetcher) outOfRange(p *part, a *ask, out []Fetched) []Fetched {
	gap := &GapError{Partition: p.Partition, Wanted: a.offset, Start: a.log.From, End: a.log.To}
	switch {
	case a.logErr == nil && a.offset < a.log.From:
		return f.fail(p, gap, out)
	case a.logErr == nil && a.offset > a.log.To && (a.since >= 0 || a.epoch < 0) && p.stays(logCut, f.now(), cutAfter):
		return f.fail(p, gap, out)
	}
	p.wants = f.fresh + 1
	return f.fail(p, fmt.Errorf("fetch %s: %w", a, a.err), out)
}

// stays says whether the same oddity has been there for d, and remembers since when.
func (p *part) stays(o oddity, now time.Time, d time.Duration) bool {
	if p.odd != o {
		p.odd, p.oddSince = o, now
	}
	return now.Sub(p.oddSince) >= d
}

// fail hands out an error and keeps the partition quiet for a while, also after a final one: the caller may insist.
func (f *Fetcher) fail(p *part, err error, out []Fetched) []Fetched {
	p.failures++
	p.due = f.now().Add(backoff(p.failures))
	if p.odd == logHole { // what comes after an error has to be seen again from the start: it may be another leader's answer
		p.odd = nothingOdd
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
	names map[string]bool // what was asked for
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

// settleRefresh takes over who leads what and judges the partitions that have no leader by it.
func (f *Fetcher) settleRefresh(r *refresh, out []Fetched) []Fetched {
	switch {
	case errors.Is(r.err, kgo.ErrClientClosed):
		f.cancel()
		return out
	case r.err == nil:
		f.fresh++
		for name := range r.names {
			f.topics[name] = r.meta.topics[name] // a topic that the broker left out counts as without partitions
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

// verdict says why a partition has no leader to ask.
func (p *part) verdict(t topicMeta, now time.Time) error {
	_, known := t.partition(p.ID)
	switch {
	case errors.Is(t.err, kerr.UnknownTopicOrPartition):
		if p.stays(topicGone, now, goneAfter) {
			return &MissingTopicError{Topic: p.Topic}
		}
		return t.err
	case t.err != nil:
		return t.err
	case otherID(t, p):
		if p.stays(otherTopic, now, recreatedAfter) {
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

// tooLargeToRead recognises a response over the client's read limit. The client has no exported error for it; a test
// watches the text.
func tooLargeToRead(err error) bool { return strings.Contains(err.Error(), "BrokerMaxReadBytes") }

func maxResponse(cl *kgo.Client) int64 {
	if v, ok := cl.OptValue(kgo.BrokerMaxReadBytes).(int32); ok {
		return int64(v)
	}
	return maxRead
}
