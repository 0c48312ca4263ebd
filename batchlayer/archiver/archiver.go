package archiver

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
)

// Brokers answers questions about topics of the Kafka cluster; implemented by *kafka.Admin.
type Brokers interface {
	IDs(ctx context.Context, names []string) (cluster string, ids map[string]job.TopicID, err error)
	Topics(ctx context.Context, names []string) ([]job.TopicFacts, error)
	Times(ctx context.Context, at map[job.Partition]int64) (map[job.Partition]time.Time, error)
	Sizes(ctx context.Context, names []string) (map[job.Partition]int64, error)
	OffsetsAt(ctx context.Context, names []string, at time.Time) ([]job.PartitionFacts, error)
}

// Deps are what an Archiver works with.
type Deps struct {
	Pool      *pg.Pool
	Kafka     kafka.Config
	Brokers   Brokers
	Locations *archive.Locations
	Log       *slog.Logger
	Now       func() time.Time
}

// Config bounds an Archiver. Zero fields mean the defaults set in New.
type Config struct {
	Temp   string        // folder of files that are being written
	Memory int           // bytes of records in memory over all partitions, about; default 64 MiB
	Look   time.Duration // interval between two polls of the wanted archives, default 5 s
	// KeepReplaced is how long files stay that were merged into others, default 7 days.
	KeepReplaced time.Duration
}

// Archiver archives partitions in one agent. Host is run once, beside an agent that has Work.
type Archiver struct {
	Deps
	config Config
	store  archive.Store

	control chan func()   // run by the goroutine of Host
	ended   chan struct{} // closed when Host has ended
	encode  chan struct{} // bounds how many row groups are encoded at once
	merging chan struct{} // bounds how many partitions are merged at once

	mu        sync.Mutex
	interrupt context.CancelFunc // ends the Fetch under way; guarded by mu

	// Owned by the goroutine that polls.
	grown map[job.TopicID]grown // how the logs of topics that are bounded by size grow

	// Owned by the goroutine of Host.
	parts   map[job.Partition]*part
	fetcher *kafka.Fetcher
	close   func() // the fetcher and its client
	cluster string // of the fetcher
}

// New makes an Archiver. It opens nothing.
func New(d Deps, c Config) *Archiver {
	c.Memory = cmp.Or(c.Memory, 64<<20)
	c.Look = cmp.Or(c.Look, 5*time.Second)
	c.KeepReplaced = cmp.Or(c.KeepReplaced, 7*24*time.Hour)
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Locations == nil {
		d.Locations = new(archive.Locations)
	}
	return &Archiver{
		Deps: d, config: c, control: make(chan func(), 256), ended: make(chan struct{}), encode: make(chan struct{}, 2),
		merging: make(chan struct{}, 1),
		parts:   map[job.Partition]*part{}, grown: map[job.TopicID]grown{}, close: func() {},
	}
}

// Work describes the leased work of the archiver: the partitions of wanted archives that have no fault.
func (a *Archiver) Work() agent.Work {
	return agent.Work{
		Name: "archive", Table: "kappactl.archive_position", Open: archive.NeedsArchiver, Held: archive.NeedsArchiver,
		Run: a.Run,
	}
}

// Host reads the partitions that Run has joined, and polls the wanted archives, until ctx ends. It has no error of its
// own.
func (a *Archiver) Host(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() error {
		a.looks(ctx)
		return nil
	})
	g.Go(func() error {
		defer close(a.ended)
		a.read(ctx)
		return nil
	})
	return g.Wait()
}

// do runs f in the goroutine of Host soon. False: Host has ended.
func (a *Archiver) do(f func()) bool {
	select {
	case <-a.ended:
		return false
	case a.control <- f:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.interrupt != nil {
		a.interrupt()
	}
	return true
}
