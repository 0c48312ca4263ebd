package compare

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Ends asks the brokers for the ends of topics; kafka.Admin does.
type Ends interface {
	Offsets(ctx context.Context, topics []string) ([]job.PartitionFacts, error)
}

// Config names the things to compare, and the tools to compare them with.
type Config struct {
	Program string   // this binary
	Args    []string // flags that reach the servers
	Env     []string
	Temp    string // folder for job files and archives
	Pool    pg.Config
	Brokers Ends
	Job     job.Ref
	File    []byte // job file of the version
	Topics  []string
	Rounds  int
	Watch   time.Duration // how long freshness is measured
	MaxRate string        // of replays; empty: no limit
	Say     func(format string, args ...any)
	Now     func() time.Time
}

// Run measures every way in every round, in turning order, so that a cache that one way fills does not always serve the
// next.
func Run(ctx context.Context, c Config) (Comparison, error) {
	out := Comparison{
		Schema: Schema, At: c.Now().UTC(), Job: c.Job.Job, Ref: c.Job.Number.String(),
		Seconds: c.Watch.Seconds(), Rounds: c.Rounds, Ways: map[Way][]Measure{},
	}
	var err error
	if out.IdleWAL, err = c.idleWAL(ctx); err != nil {
		return out, err
	}
	ways := Ways()
	for round := range c.Rounds {
		for i := range ways {
			way := ways[(i+round)%len(ways)]
			c.Say("round %d of %d: %s …", round+1, c.Rounds, way)
			m, records, err := c.measure(ctx, way)
			if err != nil {
				return out, fmt.Errorf("measure %s: %w", way, err)
			}
			out.Ways[way], out.Records = append(out.Ways[way], m), records
		}
	}
	return out, nil
}

// idleWAL is how much WAL others write, in bytes a second: the server's WAL cannot be told apart.
func (c Config) idleWAL(ctx context.Context) (float64, error) {
	pool, err := pg.Open(ctx, c.Pool)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	r := rig{pool: pool}
	before, err := r.wal(ctx)
	if err != nil {
		return 0, err
	}
	const look = 2 * time.Second
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-time.After(look):
	}
	after, err := r.wal(ctx)
	return float64(after-before) / look.Seconds(), err
}

// measure is one round of one way. What it made is dropped whether it succeeds or not.
func (c Config) measure(ctx context.Context, way Way) (_ Measure, records int64, err error) {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // it never fails
	schema := prefix + hex.EncodeToString(id)
	folder := filepath.Join(c.Temp, schema)
	if err := os.MkdirAll(filepath.Join(folder, "archive"), 0o700); err != nil {
		return Measure{}, 0, fmt.Errorf("make a folder for the archive: %w", err)
	}
	conf := c.Pool
	conf.Schema, conf.Application = schema, schema
	pool, err := pg.Open(ctx, conf)
	if err != nil {
		return Measure{}, 0, err
	}
	defer pool.Close()
	w := &work{
		Config: c, rig: rig{pool: pool, views: schema + "_views"}, way: way, folder: folder,
		program: program{path: c.Program, args: c.Args, env: c.Env, schema: schema},
		place: place{
			view:    job.ViewName{Schema: schema + "_views", Name: "served"},
			archive: job.FolderLocation(filepath.Join(folder, "archive")), maxRate: c.MaxRate,
		},
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, w.drop(clean), os.RemoveAll(folder))
	}()
	if err := w.run(ctx); err != nil {
		return Measure{}, 0, err
	}
	return w.measure, w.records, nil
}
