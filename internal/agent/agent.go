package agent

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Deps are what an Agent works with.
type Deps struct {
	Pool       *pg.Pool
	Runner     Runner
	Controller Controller
	Log        *slog.Logger
	Now        func() time.Time // default time.Now
}

// Config bounds an Agent. Zero fields mean the defaults set in New.
type Config struct {
	ID        string            // of this life of this process, in leases; never used again
	Host      string            // default the host's name
	PID       int               // default this process
	Release   string            // of kappactl
	HTTP      string            // where it answers, for people
	Capacity  int               // segments that it replays at once, for people; default 1
	Dialect   int               // of PARTIAL that it can run
	Poll      time.Duration     // between two looks for work, default 500 ms
	Heartbeat time.Duration     // default 1 s
	Lease     time.Duration     // of deployments and requests, default 10 s
	Hooks     map[string]string // digests of its hooks by name, for the comparison of agents; nil: not said
	Drain     time.Duration     // how long the work in hand may take after a stop, default 30 s
}

// Agent is one process that hosts work. Run is called once.
type Agent struct {
	Deps
	config Config

	first chan struct{} // closed by the first heartbeat that the database took
	once  sync.Once
}

// New makes an Agent. It opens nothing.
func New(d Deps, c Config) *Agent {
	if c.Host == "" {
		c.Host, _ = os.Hostname() // only shown to people
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	c.PID = cmp.Or(c.PID, os.Getpid())
	c.Capacity = cmp.Or(c.Capacity, 1)
	c.Poll = cmp.Or(c.Poll, 500*time.Millisecond)
	c.Heartbeat = cmp.Or(c.Heartbeat, time.Second)
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Drain = cmp.Or(c.Drain, 30*time.Second)
	return &Agent{Deps: d, config: c, first: make(chan struct{})}
}

// Ready is closed when the database has taken the first heartbeat.
func (a *Agent) Ready() <-chan struct{} { return a.first }

// aliveWithin is how old a heartbeat may be for its agent to count as alive, in heartbeats.
const aliveWithin = 5

// Alive counts the agents that share the work, this one included.
func (a *Agent) Alive(ctx context.Context) (int, error) {
	return Alive(ctx, a.Pool, aliveWithin*a.config.Heartbeat)
}

// Run hosts work until ctx ends, then finishes what is in hand and gives up its leases. Its only error is that the drain
// took too long.
func (a *Agent) Run(ctx context.Context) error {
	a.Log.Info("agent begins", "agent", a.config.ID, "release", a.config.Release)
	// Heartbeats go on while the work in hand is finished.
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var g errgroup.Group
	g.Go(func() error {
		a.heartbeats(ctx, beating)
		return nil
	})
	g.Go(func() error {
		defer stop()
		return a.host(ctx)
	})
	err := g.Wait()
	a.leave(context.WithoutCancel(ctx))
	a.Log.Info("agent ends", "agent", a.config.ID)
	return err
}

// heartbeats says that the agent is alive until beating ends, and that it is draining once ctx has ended.
func (a *Agent) heartbeats(ctx, beating context.Context) {
	quiet := newQuiet(a.Log, a.Now)
	tick := time.NewTicker(a.config.Heartbeat)
	defer tick.Stop()
	stopped := ctx.Done()
	for {
		limited, cancel := context.WithTimeout(beating, max(a.config.Heartbeat, time.Second))
		err := writeHeartbeat(limited, a.Pool, a.config, ctx.Err() != nil)
		cancel()
		if beating.Err() != nil {
			return
		}
		quiet.outcome("heartbeat", err)
		if err == nil {
			a.once.Do(func() { close(a.first) })
		}
		select {
		case <-beating.Done():
			return
		case <-stopped:
			stopped = nil // say once at once that it drains
		case <-tick.C:
		}
	}
}

// leave takes the agent's row away, so that nobody counts on it.
func (a *Agent) leave(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := deleteAgent(limited, a.Pool, a.config.ID); err != nil {
		a.Log.Warn("agent row not removed, it ages", "error", err)
	}
}

const (
	// After an agent has taken something up, more work is likely to come of it at once: for eagerFor it looks every eagerPoll.
	eagerFor  = 2 * time.Second
	eagerPoll = 50 * time.Millisecond
	// glanceEvery is how often it asks between two looks whether a person asked for something: people wait for the answer.
	glanceEvery = 100 * time.Millisecond
)

// host looks for work every Poll, and when something was asked for, until ctx ends; then it drains.
func (a *Agent) host(ctx context.Context) error {
	h := &hosting{
		a: a, runners: map[job.Ref]*task{}, deployments: map[int64]*task{}, requests: map[int64]*task{},
		rests: map[string]rest{}, quiet: newQuiet(a.Log, a.Now), renewed: a.Now(),
	}
	for ctx.Err() == nil {
		err := h.look(ctx)
		if ctx.Err() == nil {
			h.quiet.outcome("look for work", err)
		}
		pause := a.config.Poll
		if a.Now().Before(h.eager) {
			pause = min(pause, eagerPoll)
		}
		if err != nil && h.quiet.failures > 3 {
			pause = min(a.config.Poll*time.Duration(h.quiet.failures), 5*time.Second, max(a.config.Lease/2, a.config.Poll))
		}
		h.pause(ctx, pause, err == nil)
	}
	return h.drain(ctx)
}

// drain ends every task, waits for them and gives up the leases.
func (h *hosting) drain(ctx context.Context) error {
	for _, t := range h.all() {
		t.cancel()
	}
	late := time.NewTimer(h.a.config.Drain)
	defer late.Stop()
	var err error
	for name, t := range h.all() {
		select {
		case <-t.done:
		case <-late.C:
			err = fmt.Errorf("%s did not end within %s after the stop", name, h.a.config.Drain)
		}
		if err != nil {
			break
		}
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if e := releaseAll(limited, h.a.Pool, h.a.config.ID); e != nil {
		h.a.Log.Warn("leases not released, they run out", "error", e)
	}
	return err
}
