package speedlayer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"time"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
)

// share is this agent's part of a version's partitions. The live loop owns it.
type share struct {
	agents    int
	extra     int       // taken beyond the share because no other agent took them
	freeSince time.Time // since when partitions are without an owner although our share is full
}

// fair is this agent's share of a version's partitions. What is left when they are divided goes, one each, to the
// agents that come first in an order that is another one for each version: so a thousand versions of one partition are
// shared, too.
func fair(total int, agents []string, me string, ref job.Ref) int {
	mine, before, listed := score(me, ref), 0, false
	for _, id := range agents {
		listed = listed || id == me
		if s := score(id, ref); s < mine || s == mine && id < me {
			before++
		}
	}
	n := len(agents)
	if !listed { // about to stop, or not seen yet
		return (total + n - 1) / n
	}
	if before < total%n {
		return total/n + 1
	}
	return total / n
}

// score is the place of an agent in the order for a version.
func score(agent string, ref job.Ref) uint64 {
	sum := sha256.Sum256([]byte(agent + " " + ref.String()))
	return binary.BigEndian.Uint64(sum[:])
}

// want says how many more partitions to claim (positive) or to give up (negative), given our fair share among so many
// agents, how many are without an owner and how many we hold. Partitions that stay free for patience are taken beyond
// the share: the other agents may be unable to.
func (s *share) want(now time.Time, patience time.Duration, agents, fair, free, mine int) int {
	if agents != s.agents {
		s.agents, s.extra = agents, 0
	}
	fair += s.extra
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

// balance claims up to this agent's share of the partitions and gives up what is beyond it. looked is true when there
// was something new to go by. Nothing is in flight here.
func (l *live) balance(ctx context.Context) (looked bool, err error) {
	s, ok, err := l.shares(ctx)
	if err != nil || !ok {
		return err != nil, err
	}
	if len(s.agents) > 0 {
		l.agents = s.agents
	}
	if err := l.leaveUnread(ctx, len(l.agents)); err != nil {
		return true, err
	}
	l.readmit(ctx)
	share := fair(s.total, l.agents, l.Agent, l.ref)
	n := l.share.want(l.Now(), 2*l.config.Lease, len(l.agents), share, s.free, len(l.owned))
	switch {
	case n > 0:
		return true, l.take(ctx, n)
	case n < 0:
		return true, l.giveUp(ctx, -n)
	}
	return true, nil
}

// take claims n more partitions.
func (l *live) take(ctx context.Context, n int) error {
	got, err := l.claimPositions(ctx, n, l.shunArgs())
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
		l.advice.give(map[job.Partition]int64{p: h.Next}) // lag tools see a quiet topic too
		if h.Fault != "" {
			l.halt(o, job.FaultKind(h.Fault))
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
	l.differ()
}

// drop forgets a partition.
func (l *live) drop(o *owned) {
	delete(l.owned, o.partition)
	delete(l.skip, o.partition)
	l.troubles.works(fetching(o.partition.String()))
	l.troubles.works(committingTo(o.partition))
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, o.partition)
	l.differ()
}

// lose drops a partition that another worker has.
func (l *live) lose(o *owned) {
	l.drop(o)
	l.Metrics.LeaseLosses.Add(1)
	l.log.Warn("a partition was taken over by another worker", "topic", o.partition.Topic, "partition", o.partition.ID)
}

// halt stops a partition whose row has a fault of this kind, until that is cleared there: a renewal that begins later
// finds it, or answered does.
func (l *live) halt(o *owned, kind job.FaultKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.differ()
	o.halted, o.haltedAt, o.answers, o.fault.Kind = true, l.renewed, false, kind
	o.records, o.bytes, o.read = nil, 0, o.next
	l.troubles.works(fetching(o.partition.String()))
	l.troubles.works(committingTo(o.partition))
}

// giveUp releases n partitions, the last ones first, in the order in which they are claimed.
func (l *live) giveUp(ctx context.Context, n int) error {
	all := l.sorted()
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

// renew reads what this run holds and prolongs the leases that are due. It runs beside the loop, so that a slow commit
// does not cost them, and only when a look found a difference: what is as known is prolonged together with that of
// other versions.
func (l *live) renew(ctx context.Context) error {
	l.mu.Lock()
	l.renewed++
	number, asked, generation := l.renewed, maps.Clone(l.held), l.generation
	l.mu.Unlock()
	if len(asked) == 0 {
		return nil
	}
	rows, err := l.renewPositions(ctx, asked)
	if err != nil {
		return err
	}
	got := map[job.Partition]heldPosition{}
	var digest int64
	for _, h := range rows {
		p, err := h.partition()
		if err != nil {
			return err
		}
		got[p] = h
		digest += h.Hash
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation == l.generation && len(got) == len(asked) {
		l.clean = &digest
	}
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
			o.goOn(h.Next, h.LeaderEpoch)
		case !o.halted && h.Fault != "":
			l.halt(o, job.FaultKind(h.Fault))
		}
	}
}

// settleDoubt claims everything again after a COMMIT whose outcome is unknown: the claim waits for that transaction,
// and the row it returns says whether it happened.
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
