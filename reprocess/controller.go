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
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/engine"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/sampling"
)

// Deps are what a Controller works with.
type Deps struct {
	Pool    *pg.Pool
	Brokers Brokers
	History plan.Histories // nil: jobs read the brokers alone
	Speed   SpeedLayer
	Engines engine.Set
	Serving Serving
	Hooks   Hooks // may be nil: no hook is asked
	// Experiments is nil where there are none.
	Experiments ledger.Experiments
	Log         *slog.Logger
	Now         func() time.Time
	Rand        *rand.Rand
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
	Patience        time.Duration // how long work on a candidate may fail before who waits for it is told, default 30 s
}

// Controller moves versions through their life. It is safe for concurrent use: every deployment and request under a
// claim is worked on by one call.
type Controller struct {
	Deps
	config Config
	rand   lockedRand
	began  time.Time          // beats are counted from here
	hook   func(point string) // of tests, at every fault point

	samplers *sampling.Samplers
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
	c.Patience = cmp.Or(c.Patience, 30*time.Second)
	out := &Controller{Deps: d, config: c, rand: lockedRand{r: d.Rand}, began: time.Now()}
	out.samplers = sampling.New(sampling.Deps{
		Pool: d.Pool, Brokers: d.Brokers, History: d.History, Speed: d.Speed, Engines: d.Engines, Log: d.Log, Now: d.Now,
	},
		sampling.Config{Tick: c.Tick, AskTimeout: c.AskTimeout, Replays: c.Replays, Patience: c.Patience})
	return out
}

// next is the action that a pass of the loop asks for.
type next int

const (
	later next = iota // wait for the tick
	again             // go on at once
	done              // nothing is left to do for this deployment
)

// Control carries out a deployment until nothing is left to do, the claim is lost or ctx ends. A step that fails is
// tried again, and the version's verdict tells why. It returns an error when the caller should try again after a pause:
// the database is away.
func (c *Controller) Control(ctx context.Context, deployment, claim int64) error {
	w := &watch{c: c, id: deployment, claim: claim, samples: c.samplers.Of(deployment, claim)}
	for {
		n, err := w.pass(ctx)
		w.samples.Together = err == nil && n == later && w.settled
		switch {
		case errors.Is(err, ledger.ErrGone), ctx.Err() != nil:
			return nil
		case errors.Is(err, ledger.ErrLost): // a request moved the version meanwhile: look again
			if retry.Sleep(ctx, c.config.Tick/10) != nil {
				return nil
			}
		case pg.Unreachable(err), err != nil && w.phase == "":
			return fmt.Errorf("control deployment %d: %w", deployment, err)
		case err != nil:
			if !w.failed(ctx, err) {
				return nil
			}
		case n == done:
			return nil
		default:
			w.samples.Failing.Passed()
			if n == later && !w.rest(ctx) {
				return nil
			}
		}
	}
}

// watch is one version under one controller. The goroutine of Control owns it.
type watch struct {
	c       *Controller
	id      int64
	claim   int64
	samples *sampling.Sampler
	work    engine.Engine // of the version, once its state was read
	back    backing
	indexes string    // those that were made last
	expired time.Time // when expired rows were deleted last
	tidy    time.Time // when an automatic retire was tried last
	settled bool      // the last pass found nothing else to do
	logged  time.Time // when a step that fails was logged last
	view    viewed

	// What the last pass was about.
	job    string
	number int
	phase  job.Phase // empty: nothing is known yet
	paused bool
	awaits ledger.Awaited
}

// pass loads the state and does the step of its phase.
func (w *watch) pass(ctx context.Context) (next, error) {
	st, err := w.samples.Load(ctx)
	if err != nil {
		return done, err
	}
	if st.EndedAt != nil {
		return done, nil
	}
	w.job, w.number, w.phase, w.paused = st.Job, st.Number, st.Phase, st.PausedAt != nil
	w.awaits, w.settled = "", false
	if w.work, err = w.c.Engines.Of(&st.Spec); err != nil {
		return done, err
	}
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
		if st.Ref().Adopted() {
			return w.adopted(ctx, st)
		}
		return w.serving(ctx, st)
	case job.Retiring, job.Aborted, job.Failed:
		return w.clean(ctx, st)
	case job.Retired:
		return done, nil
	}
	return done, fmt.Errorf("%s is in an unknown phase %q", st.Ref(), st.Phase)
}

func (c *Controller) log(st *ledger.State) *slog.Logger {
	return c.Log.With("job", st.Job, "version", job.Number(st.Number).String(), "deployment", st.ID)
}

// fail ends a candidate that cannot go on.
func (w *watch) fail(ctx context.Context, st *ledger.State, a ledger.Answer) (next, error) {
	err := w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error { return ledger.FailVersion(ctx, tx, st, a) })
	if err != nil {
		return done, err
	}
	w.c.log(st).Error("version failed", "reason", a.Text())
	return again, nil
}

// stop moves the deployment to a state in which it cannot continue without a person.
func (w *watch) stop(ctx context.Context, st *ledger.State, on ledger.DeploymentEvent, a ledger.Answer) (next, error) {
	return w.say(ctx, st, a, func(tx *pg.Tx) error { return ledger.MoveDeployment(ctx, tx, st, on, a) })
}

// blocked notes on the deployment that its version cannot continue without a person; its state stays.
func (w *watch) blocked(ctx context.Context, st *ledger.State, a ledger.Answer) (next, error) {
	return w.say(ctx, st, a, func(tx *pg.Tx) error { return ledger.SetOutcome(ctx, tx, st, a) })
}

// say writes an outcome of the deployment and its event.
func (w *watch) say(ctx context.Context, st *ledger.State, a ledger.Answer, write func(*pg.Tx) error) (next, error) {
	err := w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := write(tx); err != nil {
			return err
		}
		return ledger.AddEvent(ctx, tx, st.Entry(ledger.EventWaiting, a.Reason))
	})
	if err != nil {
		return done, err
	}
	w.c.log(st).Info("deployment waits", "exit_code", int(a.Code), "reason", a.Text())
	return again, nil
}

// during runs f, which may take long, while the version goes on being sampled, so that its numbers stay fresh. An
// abort, a retire, a drop or a pause of the version ends f within a tick; the error is then ErrLost.
func (w *watch) during(ctx context.Context, st *ledger.State, f func(context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	finished := make(chan error, 1)
	go func() { finished <- f(ctx) }()
	tick := time.NewTicker(w.c.config.Tick)
	defer tick.Stop()
	for {
		select {
		case err := <-finished:
			return err
		case <-tick.C:
			if _, err := w.samples.Sample(ctx, st); err != nil && ctx.Err() == nil {
				w.c.log(st).Warn("sample", "error", err)
			}
			if w.stopped(ctx, st) {
				end()
				w.c.log(st).Info("step ended by a person", "outcome", <-finished)
				return ledger.ErrLost
			}
		}
	}
}

// stopped reports whether a person has ended or paused the version since its state was read.
func (w *watch) stopped(ctx context.Context, st *ledger.State) bool {
	v, err := ledger.ReadVersion(ctx, w.c.Pool, st.Ref())
	if err != nil {
		return false // the next tick asks again
	}
	return v.Paused && st.PausedAt == nil || !ledger.Candidate(v.Phase) && v.Phase != job.Live && v.Phase != job.Standby
}
