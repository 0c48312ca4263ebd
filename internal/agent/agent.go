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

	"github.com/kappactl/kappactl/internal/pg"
)

// Deps are the dependencies of an Agent.
type Deps struct {
	Pool   *pg.Pool
	Runner Runner
	Work   []Work // work shared between agents by lease; each kind has a unique name
	Log    *slog.Logger
	Now    func() time.Time // default time.Now
}

// Config configures an Agent. Zero fields mean the defaults set in New.
type Config struct {
	ID        string            // unique per process start; identifies the agent in leases
	Host      string            // default the host name
	PID       int               // default this process
	Release   string            // of kappactl
	HTTP      string            // address of its HTTP endpoints, for display
	Capacity  int               // segments that it replays at once, for display; default 1
	Dialect   int               // of PARTIAL that it can run
	Poll      time.Duration     // interval of looking for work, default 500 ms
	Heartbeat time.Duration     // default 1 s
	Lease     time.Duration     // of work items, default 10 s
	Hooks     map[string]string // digests of its hooks by name, to compare agents; nil: unknown
	Programs  []string          // patterns of the programs of jobs that it runs
	Drain     time.Duration     // how long running work may take after a stop, default 30 s
}

// Agent is a process that hosts work. Run is called once.
type Agent struct {
	Deps
	config Config

	first chan struct{} // closed by the first heartbeat that the database accepted
	once  sync.Once
}

// New creates an Agent. It opens no connection.
func New(d Deps, c Config) *Agent {
	if c.Host == "" {
		c.Host, _ = os.Hostname() // for display only
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

// Ready returns a channel that is closed once the database has accepted the first heartbeat.
func (a *Agent) Ready() <-chan struct{} { return a.first }

// missedHeartbeats is how many heartbeats an agent may miss and still count as alive.
const missedHeartbeats = 5

// AliveWithin is how old the heartbeat of a living agent is at most, for those who do not know its interval.
const AliveWithin = missedHeartbeats * time.Second

// Run hosts work until ctx ends, then finishes running work and releases its leases. It returns an error only if that
// takes too long.
func (a *Agent) Run(ctx context.Context) error {
	a.Log.Info("agent begins", "agent", a.config.ID, "release", a.config.Release)
	// Heartbeats continue while running work is finished.
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

// heartbeats writes heartbeats until beating ends, and reports the agent as draining once ctx has ended.
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
			stopped = nil // report the draining once, immediately
		case <-tick.C:
		}
	}
}

// leave deletes the agent's row, so that it no longer counts as alive.
func (a *Agent) leave(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := deleteAgent(limited, a.Pool, a.config.ID); err != nil {
		a.Log.Warn("agent row not removed, it ages", "error", err)
	}
}

const (
	// Work that an agent has claimed often causes more work immediately. It therefore polls every eagerPoll for
	// eagerFor.
	eagerFor  = 2 * time.Second
	eagerPoll = 50 * time.Millisecond
	// glanceEvery is the interval of checking for new requests between two polls, because people wait for the answer.
	glanceEvery = 100 * time.Millisecond
)

// host polls for work every Poll, and when there is a new request, until ctx ends. Then it drains.
func (a *Agent) host(ctx context.Context) error {
	h := newHosting(a)
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

// drain ends every task, waits for them and releases the leases.
func (h *hosting) drain(ctx context.Context) error {
	for _, t := range h.tasks {
		t.cancel()
	}
	late := time.NewTimer(h.a.config.Drain)
	defer late.Stop()
	var err error
	for k, t := range h.tasks {
		select {
		case <-t.done:
		case <-late.C:
			err = fmt.Errorf("%s did not end within %s after the stop", k, h.a.config.Drain)
		}
		if err != nil {
			break
		}
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if e := releaseAll(limited, h.a.Pool, h.a.Work, h.a.config.ID); e != nil {
		h.a.Log.Warn("leases not released, they run out", "error", e)
	}
	return err
}
