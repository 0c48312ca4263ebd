package speedlayer

import (
	"context"
	"time"

	"github.com/kappactl/kappactl/internal/gather"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/retry"
)

// seen is the state that one poll finds for a followed version.
type seen struct {
	standing
	agents []string // that share the work; none: they cannot be read
	total  int      // partitions
	free   int      // of them without an owner
	digest int64
	due    bool // a lease of ours has to be prolonged
}

// looks are the polls of all versions that an agent follows, sent together once a tick: one statement reads for all of
// them, and another prolongs their leases.
type looks struct {
	reads    *gather.Gather[job.Ref, seen]
	renewals *gather.Gather[job.Ref, struct{}]
	builds   *gather.Gather[job.Ref, int] // the generation that is open for reading, or 0
	began    time.Time                    // beats are counted from here
}

// moments is how many of the moments in which questions are gathered fit into a tick.
const moments = 10

func newLooks(e *Engine) looks {
	moment := e.tick() / moments
	return looks{
		reads: gather.New(moment, e.config.Timeout, e.readAll),
		renewals: gather.New(moment, e.config.Timeout, func(ctx context.Context, refs []job.Ref) ([]struct{}, error) {
			return make([]struct{}, len(refs)), e.prolongAll(ctx, refs)
		}),
		builds: gather.New(min(moment, buildEvery/moments), e.config.Timeout, e.openBuilds),
		began:  time.Now(),
	}
}

// beat is the time until the next of the moments, a tick apart, at which all versions look. One that is almost there is
// passed over.
func (e *Engine) beat() time.Duration {
	tick := e.tick()
	left := tick - time.Since(e.looks.began)%tick
	if left < tick/4 {
		left += tick
	}
	return left
}

func (l *live) nextBeat(ctx context.Context) error { return retry.Sleep(ctx, l.beat()) }

func (l *live) nextDifference(ctx context.Context) error {
	select {
	case <-l.differs:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attend finds out once a tick whether the version is still to be followed, for the loop how its partitions are shared,
// and for the renewal whether there is something to do.
func (l *live) attend(ctx context.Context) error {
	s, err := l.looks.reads.Put(ctx, l.ref)
	if err != nil {
		return err
	}
	l.pace.Store(int64(s.Every))
	l.kept.Store(s.Archive)
	if s.mode(l.config.Replays) != following {
		return errMoved
	}
	l.mu.Lock()
	l.seen, l.seenAt = &s, l.Now()
	quiet := l.clean != nil && *l.clean == s.digest
	l.mu.Unlock()
	switch {
	case quiet && !s.due:
		return nil
	case quiet:
		_, err := l.looks.renewals.Put(ctx, l.ref)
		return err
	}
	select {
	case l.differs <- struct{}{}:
	default:
	}
	return nil
}

// shares are how the version's partitions are shared, as seen since the loop asked last; false: not seen again yet.
func (l *live) shares(ctx context.Context) (s seen, ok bool, err error) {
	l.mu.Lock()
	found, fresh := l.seen, l.Now().Sub(l.seenAt) < 2*l.tick()
	l.seen = nil
	l.mu.Unlock()
	switch {
	case found != nil && len(l.shunned) == 0:
		return *found, true, nil
	case found == nil && fresh:
		return s, false, nil
	}
	s.agents = l.living(ctx)
	err = l.Pool.QueryRow(ctx, sqlShares, l.shunArgs()).Scan(&s.total, &s.free)
	return s, true, err
}

// differ notes that what this run holds is not what its rows were last compared with. The caller holds mu.
func (l *live) differ() {
	l.generation++
	l.clean = nil
}
