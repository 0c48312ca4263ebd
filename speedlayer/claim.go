package speedlayer

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
)

// share is this agent's part of a version's partitions. The live loop owns it.
type share struct {
	agents    int
	extra     int       // taken beyond the share because nobody else did
	freeSince time.Time // since when partitions are without an owner although our share is full
}

// want says how many more partitions to claim (positive) or to give up (negative), given how many there are, how many are
// without an owner and how many we hold. Partitions that stay free for patience are taken beyond the share: the other
// agents may be unable to.
func (s *share) want(now time.Time, patience time.Duration, agents, total, free, mine int) int {
	if agents != s.agents {
		s.agents, s.extra = agents, 0
	}
	fair := (total+agents-1)/agents + s.extra
	if free == 0 || mine < fair {
		s.freeSince = time.Time{}
	}
	switch {
	case mine > fair:
		return fair - mine
	case free == 0:
		return 0
	case mine < fair:
		return min(free, fair-mine)
	case s.freeSince.IsZero():
		s.freeSince = now
		return 0
	case now.Sub(s.freeSince) < patience:
		return 0
	}
	s.extra += free
	s.freeSince = time.Time{}
	return free
}

// balance claims up to this agent's share of the partitions and gives up what is beyond it. Nothing is in flight here.
func (l *live) balance(ctx context.Context) error {
	agents := l.alive(ctx)
	if agents == 0 {
		agents = max(l.share.agents, 1)
	}
	var total, free int
	if err := l.Pool.QueryRow(ctx, sqlShares, refArgs(l.ref)).Scan(&total, &free); err != nil {
		return err
	}
	n := l.share.want(l.Now(), 2*l.config.Lease, agents, total, free, len(l.owned))
	switch {
	case n > 0:
		return l.take(ctx, n)
	case n < 0:
		return l.giveUp(ctx, -n)
	}
	return nil
}

// take claims n more partitions.
func (l *live) take(ctx context.Context, n int) error {
	got, err := l.claimPositions(ctx, n)
	if err != nil {
		return err
	}
	for _, h := range got {
		p, err := h.partition()
		if err != nil {
			return err
		}
		o := &owned{partition: p, claim: h.Claim, next: h.Next, read: h.Next, epoch: h.LeaderEpoch}
		l.keep(o)
		if h.Fault != "" {
			l.halt(o)
		}
	}
	if len(got) > 0 {
		l.hit(faultpoint.LiveClaimed)
	}
	return nil
}

// keep puts a partition under this run's care; its lease is renewed from now on.
func (l *live) keep(o *owned) {
	l.owned[o.partition] = o
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[o.partition] = o.claim
}

// drop forgets a partition.
func (l *live) drop(o *owned) {
	delete(l.owned, o.partition)
	delete(l.skip, o.partition)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, o.partition)
}

// lose drops a partition that another worker has.
func (l *live) lose(o *owned) {
	l.drop(o)
	l.Metrics.LeaseLosses.Add(1)
	l.log.Warn("a partition was taken over by another worker", "topic", o.partition.Topic, "partition", o.partition.ID)
}

// halt stops a partition until a renewal that begins later finds its fault cleared.
func (l *live) halt(o *owned) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o.halted, o.haltedAt = true, l.renewed
	o.records, o.bytes, o.read = nil, 0, o.next
}

// giveUp releases n partitions, the last ones first, in the order in which they are claimed.
func (l *live) giveUp(ctx context.Context, n int) error {
	all := l.sorted()
	lane := func(o *owned) int { return int(o.partition.ID) % l.lanes }
	slices.SortStableFunc(all, func(a, b *owned) int { return lane(a) - lane(b) })
	released := claims{}
	for _, o := range all[len(all)-min(n, len(all)):] {
		released[o.partition] = o.claim
		l.drop(o)
	}
	return l.releasePositions(ctx, released)
}

// giveUpAll releases everything, also when ctx is done. What cannot be released runs out with its lease.
func (l *live) giveUpAll(ctx context.Context) {
	end, cancel := l.finishing(ctx)
	defer cancel()
	if err := l.giveUp(end, len(l.owned)); err != nil {
		l.log.Warn("claims could not be released and run out with their lease", "error", err)
	}
}

// renew prolongs the leases; it runs beside the loop, so that a slow commit does not cost them.
func (l *live) renew(ctx context.Context) error {
	l.mu.Lock()
	l.renewed++
	number, asked := l.renewed, maps.Clone(l.held)
	l.mu.Unlock()
	if len(asked) == 0 {
		return nil
	}
	rows, err := l.renewPositions(ctx, asked)
	if err != nil {
		return err
	}
	got := map[job.Partition]heldPosition{}
	for _, h := range rows {
		p, err := h.partition()
		if err != nil {
			return err
		}
		got[p] = h
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewal = renewal{number: number, asked: asked, got: got}
	return nil
}

// notice takes what the last renewal found: partitions that were lost, faults that were cleared or written by others.
func (l *live) notice() {
	l.mu.Lock()
	found := l.renewal
	l.renewal = renewal{}
	l.mu.Unlock()
	for p, claim := range found.asked {
		o := l.owned[p]
		if o == nil || o.claim != claim {
			continue
		}
		h, kept := found.got[p]
		switch {
		case !kept && !l.doubt:
			l.lose(o)
		case !kept:
		case o.halted && h.Fault == "" && found.number > o.haltedAt:
			o.halted, o.fault = false, job.Fault{}
			o.rewind(h.Next)
			o.read, o.epoch = o.next, h.LeaderEpoch
		case !o.halted && h.Fault != "":
			l.halt(o)
		}
	}
}

// settleDoubt claims everything again after a COMMIT whose outcome is unknown: the claim waits for that transaction, and
// the row it returns says whether it happened.
func (l *live) settleDoubt(ctx context.Context) error {
	held := claims{}
	for p, o := range l.owned {
		held[p] = o.claim
	}
	got, err := l.reclaim(ctx, held)
	if err != nil {
		return err // in doubt still, also when it is this commit that is unknown
	}
	kept := map[job.Partition]heldPosition{}
	for _, h := range got {
		p, err := h.partition()
		if err != nil {
			return err
		}
		kept[p] = h
	}
	for _, o := range l.sorted() {
		h, ok := kept[o.partition]
		if !ok {
			l.lose(o)
			continue
		}
		o.claim = h.Claim
		o.rewind(h.Next)
		l.keep(o)
	}
	l.doubt = false
	return nil
}
