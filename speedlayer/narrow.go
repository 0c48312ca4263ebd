package speedlayer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
)

// A batch that is too much at once, for the engine's memory, for its time or for one transaction, is made smaller, and
// so that one partition's record does not stop the others: its partitions are committed one by one from there on, each
// with a limit of its own, and behind those that had no part in it. A record that is too much alone becomes a dead
// letter.

// narrowed is how a partition is read that was part of a batch that was too much.
type narrowed struct {
	until int64     // it is alone in its batches up to this offset
	limit int       // records of such a batch; 0: as many as in any
	turn  int       // of its last batch
	tries int       // how often the one record at next was too much, in a row
	due   time.Time // it is not tried before
	// refusals is how often PostgreSQL did not take the rows of the partition alone, in a row.
	refusals int
}

// alone reports whether the partition must have a batch of its own.
func (o *owned) alone() bool { return o.until > o.next }

// triesOfOne is how often one record may be too much before it is a dead letter.
const triesOfOne = 3

// nextBatch returns the partitions to commit next: of all partitions that may share a batch, else of the one that
// waited longest.
func (l *live) nextBatch() []part {
	now := l.Now()
	var together, alone []*owned
	for _, o := range l.sorted() {
		switch {
		case !o.pending() || o.due.After(now):
		case o.alone():
			alone = append(alone, o)
		default:
			together = append(together, o)
		}
	}
	if parts := cutBatch(together, l.limit); len(parts) > 0 || len(alone) == 0 {
		return parts
	}
	o := slices.MinFunc(alone, func(a, b *owned) int { return a.turn - b.turn })
	l.turns++
	o.turn = l.turns
	return cutBatch([]*owned{o}, cmp.Or(o.limit, l.limit))
}

// tooMuch makes smaller what failed as too much at once because of err. nil: look again at what is pending.
func (l *live) tooMuch(parts []part, err error) error {
	n := countRecords(parts)
	for _, p := range parts {
		p.until = max(p.until, p.to)
	}
	var resource *query.ResourceError
	engine := errors.As(err, &resource)
	switch {
	case len(parts) > 1:
		l.limit = max(n/2, 1)
		return unless(engine, err)
	case n > 1:
		parts[0].limit = max(n/2, 1)
		return unless(engine, err)
	case n == 0 || !engine || !resource.Costly: // a server may be away, its table locked, a disk full
		return err
	}
	p := parts[0]
	if p.tries++; p.tries < triesOfOne {
		p.due = l.Now().Add(retry.Backoff(p.tries, 500*time.Millisecond, 5*time.Second))
		l.quiet.warn("a record is too much and is tried again", err, "record", offsetName(p.partition, p.records[0].Offset))
		return nil
	}
	l.setAside(p.partition, p.records[0].Offset, tooExpensive(resource))
	return nil
}

// refused isolates the partitions whose rows PostgreSQL does not take because of err, as a trigger or a policy on the
// version's table may do: those of a batch are tried alone from there on, and one that is refused alone waits, longer
// each time, while the others go on.
func (l *live) refused(ctx context.Context, parts []part, err error) {
	l.Metrics.CommitRetries.Add(1)
	for _, p := range parts {
		p.until = max(p.until, p.to)
	}
	if len(parts) > 1 {
		return
	}
	p := parts[0]
	p.refusals++
	p.due = l.Now().Add(retry.Backoff(p.refusals, 20*time.Millisecond, 5*time.Second))
	l.quiet.warn(cannotCommit, err, "partition", p.partition.String())
	l.failed(ctx, committingTo(p.partition), func(agent, cause string) reason.Reason {
		return reason.CommitRefused(agent, p.partition.String(), cause)
	}, err)
}

// unless is err, unless it is cured.
func unless(cured bool, err error) error {
	if cured {
		return nil
	}
	return err
}

// widen takes back a part of what tooMuch did, after a batch that passed.
func (l *live) widen(parts []part) {
	for _, p := range parts {
		p.tries, p.refusals, p.due = 0, 0, time.Time{}
		switch {
		case !p.alone():
			p.narrowed = narrowed{turn: p.turn}
		case p.limit > 0:
			p.limit = min(p.limit*2, l.most)
		}
	}
	if l.limit < l.most {
		l.limit = min(l.limit*2, l.most)
	}
}

// tooExpensive is why a record that is too much alone is a dead letter.
func tooExpensive(err *query.ResourceError) format.Reject {
	cause, _, _ := strings.Cut(err.Error(), "\n")
	return format.Reject{
		Reason: query.TooExpensive,
		Detail: fmt.Sprintf("the record alone needs more than the query may have (agent.memory): %s", cause),
	}
}
