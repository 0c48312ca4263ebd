package speedlayer

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

// An agent may reach PostgreSQL and not the brokers, or not one of them: its leases are renewed, so no other agent
// takes over what it cannot read. Beside other agents it gives such claims up after unreadAfter leases, and leaves them
// to the others for shunnedFor leases at least, until a broker answers it.
const (
	unreadAfter = 2
	shunnedFor  = 3
)

// errUnread ends an attempt at a segment for which no fetch was answered.
var errUnread = errors.New("the brokers do not answer this agent; the segment is left to another one")

// answered notes whether a fetch of the partition brought an answer.
func (o *owned) answered(err error, now time.Time) {
	switch {
	case err == nil:
		o.failing = time.Time{}
	case o.failing.IsZero():
		o.failing = now
	}
}

// leaveUnread gives up the partitions for which fetches only failed.
func (l *live) leaveUnread(ctx context.Context, agents int) error {
	now := l.Now()
	released := claims{}
	for p, o := range l.owned {
		if agents > 1 && !o.failing.IsZero() && now.Sub(o.failing) >= unreadAfter*l.config.Lease {
			released[p], l.shunned[p] = o.claim, now
			l.drop(o)
		}
	}
	if len(released) > 0 {
		l.log.Warn("partitions are left to other agents: the brokers do not answer this one", "partitions", len(released))
	}
	return l.releasePositions(ctx, released)
}

// readmit forgets what was shunned for long enough, when a broker answers.
func (l *live) readmit(ctx context.Context) {
	now := l.Now()
	var due []job.Partition
	for p, since := range l.shunned {
		if now.Sub(since) >= shunnedFor*l.config.Lease {
			due = append(due, p)
		}
	}
	if len(due) == 0 || !l.reaches(ctx) {
		return
	}
	for _, p := range due {
		delete(l.shunned, p)
	}
}

// shunArgs name the partitions that are not claimed.
func (l *live) shunArgs() pgx.NamedArgs {
	ids, partitions := []string{}, []int32{}
	for p := range l.shunned {
		ids, partitions = append(ids, p.TopicID.String()), append(partitions, p.ID)
	}
	args := refArgs(l.ref)
	args["shunned_ids"], args["shunned"] = ids, partitions
	return args
}

// reaches says whether a broker answers within a moment.
func (r *run) reaches(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, min(r.config.Lease, 2*time.Second))
	defer cancel()
	admin, err := kafka.NewAdmin(r.Kafka)
	if err != nil {
		return false
	}
	defer admin.Close()
	return admin.Ping(limited) == nil
}

// mayRead says whether this agent may claim segments: not while it leaves them to others.
func (p *replay) mayRead(ctx context.Context) bool {
	since := p.unread.Load()
	if since == 0 {
		return true
	}
	if p.Now().Sub(time.Unix(0, since)) < shunnedFor*p.config.Lease || !p.reaches(ctx) {
		return false
	}
	p.unread.Store(0)
	return true
}
