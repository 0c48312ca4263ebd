package speedlayer

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
)

// Deps are what an Engine works with.
type Deps struct {
	Pool  *pg.Pool
	Kafka kafka.Config
	// Agent names this process in leases. No two processes may share it, nor two lives of one process.
	Agent string
	// Living are the ids of the living agents that can do this work, this one's among them; nil: there is only this one.
	Living  func(ctx context.Context) ([]string, error)
	Admin   *kafka.Admin // asks the brokers what many versions want to know; nil: each has a client of its own
	Log     *slog.Logger
	Now     func() time.Time
	Metrics *Metrics       // may be nil
	Shelf   *archive.Shelf // of the archive's files; nil: one of its own
}

// Config bounds an Engine. Zero fields mean the defaults set in New.
type Config struct {
	Lease   time.Duration // of segments and positions; default 10 s
	Memory  int64         // bytes for fetch buffers and query sessions; default 1 GB
	Temp    string        // folder that queries spill to; empty: they do not spill
	Spill   int64         // bytes there that all queries together may take; default 10 GB each
	Replays int           // versions that replay at once, over all agents; default 2
	Workers int           // segments that this agent replays at once; default the CPUs
	// Landings is how many of them write at once, each on a connection of its own: renewals of leases need some that are
	// left over. Default 16.
	Landings int
	// Timeout bounds a statement of a commit and how long a commit in hand may take after a stop; default 30 s.
	Timeout time.Duration
}

func (c Config) withDefaults() Config {
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Memory = cmp.Or(c.Memory, 1_000_000_000)
	c.Replays = cmp.Or(c.Replays, 2)
	c.Workers = cmp.Or(c.Workers, runtime.NumCPU())
	c.Landings = cmp.Or(c.Landings, 16)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	return c
}

// Engine does the work of versions on this agent. It is safe for concurrent use; every Run is one version.
type Engine struct {
	Deps
	config   Config
	workers  chan struct{} // a segment that is being read holds one
	landings chan struct{} // a segment that is being written holds one
	compiles chan struct{} // a version that is compiled before it is needed holds one
	follows  atomic.Int64  // versions that are followed live
	looks    looks
	tails    *tails

	// For tests of this package: at is called at every fault point, beside faultpoint.Hit; most bounds the records of a
	// live batch; unpacked is how many bytes a segment's records may have before it is split.
	at        func(point string)
	unpacked  int
	strained  func(strain) strain // what the database is taken to do, of what it does
	most      int                 // records of a live batch
	restAfter time.Duration
	patience  time.Duration // how long the engine may work from one batch, taken or given, to the next
}

// New makes an Engine. It opens nothing.
func New(d Deps, c Config) *Engine {
	if d.Metrics == nil {
		d.Metrics = &Metrics{}
	}
	c = c.withDefaults()
	if d.Shelf == nil {
		d.Shelf = archive.NewShelf(d.Pool, new(archive.Locations), c.Temp, archive.DefaultShelf)
	}
	e := &Engine{
		Deps: d, config: c,
		workers: make(chan struct{}, c.Workers), landings: make(chan struct{}, c.Landings),
		compiles: make(chan struct{}, 1),
		at:       func(string) {}, unpacked: maxUnpacked, most: noLimit, patience: 30 * time.Second, restAfter: restAfter,
	}
	e.looks, e.tails = newLooks(e), newTails(e)
	return e
}

// sessionMemory is one query session's share: 40 % over the workers' sessions and that of one live version, and never
// so little that the engine cannot start.
func (e *Engine) sessionMemory() int64 {
	return max(e.config.Memory*4/10/int64(e.config.Workers+1), 64<<20)
}

// session bounds one query session, in memory and in the folder that it spills to.
func (e *Engine) session() query.Config {
	c := query.Config{Memory: e.sessionMemory(), Temp: e.config.Temp}
	if e.config.Spill > 0 {
		c.TempLimit = max(e.config.Spill/int64(e.config.Workers+1), 1<<20)
	}
	return c
}

// followSession bounds the query session of a live version: as one of the sessions, and less where many are followed.
// They share 40 % of the memory, and what one session may spill. What a session cannot hold it spills, and a batch that
// does not fit is made smaller.
func (e *Engine) followSession() query.Config {
	c, follows := e.session(), max(e.follows.Load(), 1)
	c.Memory = max(min(c.Memory, e.config.Memory*4/10/follows), 64<<20)
	if c.TempLimit > 0 {
		c.TempLimit = max(c.TempLimit/follows, 1<<20)
	}
	return c
}

// fetchMemory bounds what a live version holds of records that are not committed yet: a tenth of the memory, less when
// more than four versions share 40 % of it.
func (e *Engine) fetchMemory() int {
	share := min(e.config.Memory/10, e.config.Memory*4/10/max(e.follows.Load(), 1))
	return int(min(max(share, 4<<20), 64<<20))
}

// followFetches bounds what the fetcher of a live version asks for and holds: about half as much again, while what came
// before waits for its commit.
func (e *Engine) followFetches(wait time.Duration) kafka.FetchConfig {
	memory := e.fetchMemory()
	answer := min(memory/2, 32<<20)
	return kafka.FetchConfig{MaxWait: wait, MaxBytes: int32(answer / 2), MaxAnswer: answer, MaxUnpacked: min(answer, 8<<20)} //nolint:gosec // at most 16 MiB
}

// replayFetches bounds what the fetcher of a replay worker asks for. A worker has about eight answers in its hands,
// from the one that is asked for ahead to the batches that wait for the statement.
func (e *Engine) replayFetches() kafka.FetchConfig {
	share := e.config.Memory * 4 / 10 / int64(e.config.Workers) / 8
	return kafka.FetchConfig{
		MaxPartitionBytes: fetchBytes, MaxBytes: fetchBytes,
		MaxUnpacked: int(min(max(share, fetchBytes), 8<<20)),
	}
}

// tick is how often the version row is read and leases are renewed.
func (e *Engine) tick() time.Duration {
	return min(max(e.config.Lease/3, 20*time.Millisecond), 500*time.Millisecond)
}

// look is how often the phase is read where its change is waited for.
func (e *Engine) look() time.Duration { return min(e.tick(), 100*time.Millisecond) }

// idle is how long a transaction of ours may do nothing: a process that is frozen in one keeps its rows from others,
// and after the lease they are no longer its own.
func (e *Engine) idle() time.Duration { return max(e.config.Lease, time.Second) }

// living returns the agents to share the work with; none when they cannot be read: then we give no work to another
// agent.
func (e *Engine) living(ctx context.Context) []string {
	if e.Living == nil {
		return []string{e.Agent}
	}
	ids, err := e.Living(ctx)
	if err != nil {
		return nil
	}
	if len(ids) == 0 {
		return []string{e.Agent}
	}
	return ids
}

// finishing is a context for what must be finished although ctx is done.
func (e *Engine) finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), e.config.Timeout)
}

// acquire takes a slot of sem or ends with ctx.
func acquire(ctx context.Context, sem chan struct{}) error {
	select {
	case sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
