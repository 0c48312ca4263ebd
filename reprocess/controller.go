package reprocess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Deps are what a Controller works with.
type Deps struct {
	Pool      *pg.Pool
	Topics    Topics
	Records   Log
	Replays   Replays
	Queue     Queue
	Positions Positions
	Gaps      Gaps // nil: gaps are not accepted
	Tables    Tables
	Views     Views
	Removals  Removals
	Adoptions Adoptions
	Expiry    Expiry // may be nil: expired rows are then hidden only
	Hooks     Hooks  // may be nil: nobody is asked
	Log       *slog.Logger
	Now       func() time.Time
	Rand      *rand.Rand
}

// Config bounds a Controller. Zero fields mean the defaults set in NewController.
type Config struct {
	Tick            time.Duration // between two samples, default 1 s
	PromoteDeadline time.Duration // for the tries of a flip, default 60 s
	HoldFor         time.Duration // how long a barrier may stand, default 5 s
	LockTimeout     time.Duration // how long the flip may queue before readers, default 80 ms
	RetryEvery      time.Duration // between two tries of a flip, up to half more, default 200 ms
	PollEvery       time.Duration // while a barrier fills, default 20 ms
	AskTimeout      time.Duration // for one question to the brokers, default 4 s
	ExtendOver      int64         // records that arrived in a replay and make it go on, default 100,000
	ExtendRounds    int           // default 3
	Replays         int           // versions that replay at once, over all agents; default 2
	CheckFresh      time.Duration // how old a passed check may be at the flip, default 30 s
	FirstSample     time.Duration // how long a promote waits for the first sample of an agent that has just taken over, default 15 s
	ChecksRole      string        // the PostgreSQL role that checks run as; empty: the agent's own
	DropPatience    time.Duration // how long a table may resist a drop before who asked is told, default 10 s
}

// Controller moves versions through their life. It is safe for concurrent use: every deployment and request under a
// claim is worked on by one call.
type Controller struct {
	Deps
	config Config
	rand   lockedRand
	hook   func(point string) // of tests, at every fault point
}

// hit passes a fault point.
func (c *Controller) hit(point string) {
	faultpoint.Hit(point)
	if c.hook != nil {
		c.hook(point)
	}
}

// lockedRand is guarded by its mutex.
type lockedRand struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (l *lockedRand) int64n(n int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Int64N(max(1, n))
}

// NewController makes a Controller.
func NewController(d Deps, c Config) *Controller {
	c.Tick = cmp.Or(c.Tick, time.Second)
	c.PromoteDeadline = cmp.Or(c.PromoteDeadline, time.Minute)
	c.HoldFor = cmp.Or(c.HoldFor, 5*time.Second)
	c.LockTimeout = cmp.Or(c.LockTimeout, 80*time.Millisecond)
	c.RetryEvery = cmp.Or(c.RetryEvery, 200*time.Millisecond)
	c.PollEvery = cmp.Or(c.PollEvery, 20*time.Millisecond)
	c.AskTimeout = cmp.Or(c.AskTimeout, 4*time.Second)
	c.ExtendOver = cmp.Or(c.ExtendOver, 100_000)
	c.ExtendRounds = cmp.Or(c.ExtendRounds, 3)
	c.Replays = cmp.Or(c.Replays, 2)
	c.CheckFresh = cmp.Or(c.CheckFresh, 30*time.Second)
	c.FirstSample = cmp.Or(c.FirstSample, 15*time.Second)
	c.DropPatience = cmp.Or(c.DropPatience, 10*time.Second)
	return &Controller{Deps: d, config: c, rand: lockedRand{r: d.Rand}}
}

// next is what a pass of the loop asks for.
type next int

const (
	later next = iota // wait for the tick
	again             // go on at once
	done              // nothing is left to do for this deployment
)

// Control looks after the version of a deployment until nothing is left to do, the claim is lost or ctx ends. It returns
// an error when the caller should try again after a pause, as when the database is away.
func (c *Controller) Control(ctx context.Context, deployment, claim int64) error {
	w := &watch{c: c, id: deployment, claim: claim, tracks: map[job.Partition]*track{}}
	for {
		n, err := w.pass(ctx)
		switch {
		case errors.Is(err, errGone), ctx.Err() != nil:
			return nil
		case errors.Is(err, errLost): // a request moved the version meanwhile: look again
			if !sleep(ctx, c.config.Tick/10) {
				return nil
			}
		case err != nil:
			return fmt.Errorf("control deployment %d: %w", deployment, err)
		case n == done:
			return nil
		case n == later:
			if !w.rest(ctx) {
				return nil
			}
		}
	}
}

// watch is one version under one controller. The goroutine of Control owns it.
type watch struct {
	c          *Controller
	id         int64
	claim      int64
	tracks     map[job.Partition]*track
	seeded     bool
	good       time.Time // since when every partition is within its limits; zero when one is not
	dead       []deadCount
	back       backing
	indexes    string    // those that were made last
	expired    time.Time // when expired rows were deleted last
	tidy       time.Time // when an automatic retire was tried last
	lag        lagSeries
	ages       ages // of what is unread, as asked at aged
	aged       time.Time
	alarm      alarm
	moved      []string // warnings of keys in several partitions, once movedKnown
	movedKnown bool

	// What the last pass left for rest.
	job    string
	number int
	awaits awaited
}

// pass loads the state and does the step of its phase.
func (w *watch) pass(ctx context.Context) (next, error) {
	st, err := loadState(ctx, w.c.Pool, w.id, w.claim)
	if err != nil {
		return done, err
	}
	if st.EndedAt != nil {
		return done, nil
	}
	w.job, w.number, w.awaits = st.Job, st.Number, ""
	switch st.Phase {
	case job.Staged:
		return w.staged(ctx, st)
	case job.Replaying:
		return w.replaying(ctx, st)
	case job.Building:
		return w.building(ctx, st)
	case job.CatchingUp, job.CaughtUp, job.Verified:
		return w.candidate(ctx, st)
	case job.Live, job.Standby:
		if st.ref().Adopted() {
			return w.adopted(ctx, st)
		}
		return w.serving(ctx, st)
	case job.Retiring, job.Aborted, job.Failed:
		return w.clean(ctx, st)
	case job.Retired:
		return done, nil
	}
	return done, fmt.Errorf("%s is in an unknown phase %q", st.ref(), st.Phase)
}

func (c *Controller) log(st *state) *slog.Logger {
	return c.Log.With("job", st.Job, "version", job.Number(st.Number).String(), "deployment", st.ID)
}

// fail ends a candidate that cannot go on.
func (w *watch) fail(ctx context.Context, st *state, a Answer) (next, error) {
	err := w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error { return failVersion(ctx, tx, st, a) })
	if err != nil {
		return done, err
	}
	w.c.log(st).Error("version failed", "reason", a.Text)
	return again, nil
}

// say notes on the deployment that it cannot go on without a person, once.
func (w *watch) say(ctx context.Context, st *state, to job.DeploymentState, a Answer) (next, error) {
	err := w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := setState(ctx, tx, st, to, &a); err != nil {
			return err
		}
		return addEvent(ctx, tx, st.entry("waiting", "%s", a.Text))
	})
	if err != nil {
		return done, err
	}
	w.c.log(st).Info("deployment waits", "state", to, "exit_code", int(a.Code), "reason", a.Text)
	return again, nil
}

// during runs f, which may take long, while the version goes on being sampled, so that its numbers stay fresh.
func (w *watch) during(ctx context.Context, st *state, f func(context.Context) error) error {
	finished := make(chan error, 1)
	go func() { finished <- f(ctx) }()
	tick := time.NewTicker(w.c.config.Tick)
	defer tick.Stop()
	for {
		select {
		case err := <-finished:
			return err
		case <-tick.C:
			if _, err := w.sample(ctx, st); err != nil && ctx.Err() == nil {
				w.c.log(st).Warn("sample", "error", err)
			}
		}
	}
}

// sleep waits for d and says false when ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
