package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// crowd is the measurement of one agent with many live versions.
type crowd struct {
	Jobs         int     `json:"jobs"`
	Topics       int     `json:"topics"`
	Partitions   int     `json:"partitions"`              // of each topic
	Live         float64 `json:"seconds_until_live"`      // from the first stage to the last flip
	Deploy       float64 `json:"deploy_seconds"`          // of one more
	Status       float64 `json:"status_seconds"`          // of kappactl status over all jobs
	Transactions float64 `json:"transactions_per_second"` // in PostgreSQL, without anything to read
	CPU          float64 `json:"cores"`                   // of the agent
	Memory       int64   `json:"bytes"`                   // resident, of the agent
	Brokers      int     `json:"broker_connections"`
	Database     int     `json:"postgres_connections"`
	Join         float64 `json:"join_seconds,omitempty"`     // until a second agent has its share
	Takeover     float64 `json:"takeover_seconds,omitempty"` // from kill -9 of the first until the second has all
	P99          float64 `json:"p99_seconds,omitempty"`      // from produce to visible, with records on every topic
	Rate         float64 `json:"records_per_second,omitempty"`
}

const (
	crowdTopics     = 20
	crowdPartitions = 2
	crowdRate       = 200 // records a second of each topic, while there are any
	crowdActive     = 100 // versions; with more, the topics stay silent
	crowdSettle     = 45 * time.Second
	crowdWarm       = 10 * time.Second // from the first record on topics that were silent until p99 counts
)

// crowdJob is job i of a crowd. The first one's view is that of the live benchmark.
func crowdJob(i int, topic string) string {
	view := fmt.Sprintf("crowd_%d", i)
	if i == 0 {
		view = "rolled_up"
	}
	return fmt.Sprintf(rolledUpJob, fmt.Sprintf("crowd_%d", i), topic, view)
}

// jobsBench gives one agent more and more jobs.
func (b *bench) jobsBench(ctx context.Context) error {
	for _, n := range b.jobs {
		c := crowd{Jobs: n, Topics: min(n, crowdTopics), Partitions: crowdPartitions}
		if err := b.crowded(ctx, &c); err != nil {
			return fmt.Errorf("%d jobs: %w", n, err)
		}
		b.result.Jobs = append(b.result.Jobs, c)
		b.say("%d jobs: live after %.1fs, one more in %.1fs, status %.2fs, %.1f transactions/s, %.3f cores, %.0f MB, %d "+
			"broker and %d PostgreSQL connections, p99 %.0f ms, a second agent has its share after %.1fs and all of a killed "+
			"one after %.1fs",
			n, c.Live, c.Deploy, c.Status, c.Transactions, c.CPU, float64(c.Memory)/1e6, c.Brokers, c.Database, c.P99*1000,
			c.Join, c.Takeover)
	}
	return nil
}

// crowded deploys the jobs of a crowd and measures the agent that runs them.
func (b *bench) crowded(ctx context.Context, c *crowd) (err error) {
	topics := make([]string, c.Topics)
	for i := range topics {
		topics[i] = fmt.Sprintf("crowd-%d-%d", c.Jobs, i)
		if err := b.makeTopic(ctx, topics[i], c.Partitions, 0); err != nil {
			return err
		}
		defer b.dropTopic(ctx, topics[i])
	}
	h, err := b.host(ctx, 1)
	if err != nil {
		return err
	}
	defer h.end(&err)
	dsn, a := h.dsn, h.agents[0]
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	began := time.Now()
	if err := b.stage(ctx, dsn, c.Jobs, topics); err != nil {
		return err
	}
	for live := 0; live < c.Jobs; {
		if err := conn.QueryRow(ctx, `SELECT count(*) FROM kappactl.version WHERE phase = 'live'`).Scan(&live); err != nil {
			return err
		}
		if time.Since(began) > 30*time.Minute {
			return fmt.Errorf("only %d are live after %s", live, time.Since(began))
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	c.Live = time.Since(began).Seconds()
	b.say("%d jobs are live after %.1fs", c.Jobs, c.Live)
	if err := pause(ctx, crowdSettle); err != nil {
		return err
	}
	if err := b.idle(ctx, c, a, conn); err != nil {
		return err
	}
	if err := b.ask(ctx, c, dsn, topics[0]); err != nil {
		return err
	}
	if c.Jobs <= crowdActive {
		if err := b.busy(ctx, c, topics, conn); err != nil {
			return err
		}
	}
	return b.handover(ctx, c, h, conn)
}

// stage writes the desired state of n jobs, as deploy does.
func (b *bench) stage(ctx context.Context, dsn string, n int, topics []string) error {
	pool, err := pg.Open(ctx, pg.Config{DSN: dsn})
	if err != nil {
		return err
	}
	defer pool.Close()
	store := reprocess.NewStore(pool)
	for i := range n {
		spec, err := job.Parse(fmt.Sprintf("crowd_%d.yaml", i), []byte(crowdJob(i, topics[i%len(topics)])))
		if err != nil {
			return err
		}
		compiled, err := query.Compile(ctx, spec)
		if err != nil {
			return err
		}
		_, err = store.Stage(ctx, plan.Staging{
			Spec: spec, Layout: compiled.Layout, Hash: spec.Hash(query.Dialect), Dialect: query.Dialect, Engine: query.Engine(),
			By: "bench", File: string(spec.Expanded),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// idle measures an agent that has nothing to read.
func (b *bench) idle(ctx context.Context, c *crowd, a *agent, conn *pgx.Conn) error {
	commits := func() (n int64, err error) {
		err = conn.QueryRow(ctx,
			`SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()`).Scan(&n)
		return n, err
	}
	profile := b.profiled(ctx, a, fmt.Sprintf("jobs-%d", c.Jobs), int(b.live.Seconds()))
	before, err1 := commits()
	cpu, _, err2 := usage(a.cmd.Process.Pid)
	began := time.Now()
	if err := errors.Join(err1, err2, pause(ctx, b.live)); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	after, err1 := commits()
	used, _, err2 := usage(a.cmd.Process.Pid)
	c.Transactions, c.CPU = float64(after-before)/took, (used-cpu)/took
	profile()
	resident, err3 := resident(a.cmd.Process.Pid)
	brokers, err4 := connections(a.cmd.Process.Pid, b.brokers)
	c.Memory, c.Brokers = resident, brokers
	err5 := conn.QueryRow(ctx,
		`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'kappactl agent'`).Scan(&c.Database)
	return errors.Join(err1, err2, err3, err4, err5)
}

// ask times commands beside the crowd.
func (b *bench) ask(ctx context.Context, c *crowd, dsn, topic string) error {
	began := time.Now()
	if _, _, err := b.command(ctx, dsn, "status"); err != nil {
		return err
	}
	c.Status = time.Since(began).Seconds()
	path := filepath.Join(b.folder, "crowd-one-more.yaml")
	if err := os.WriteFile(path, []byte(crowdJob(c.Jobs, topic)), 0o600); err != nil {
		return err
	}
	began = time.Now()
	_, _, err := b.command(ctx, dsn, "deploy", path)
	c.Deploy = time.Since(began).Seconds()
	return err
}

// busy produces into every topic and measures when the records of the first one become visible.
func (b *bench) busy(ctx context.Context, c *crowd, topics []string, conn *pgx.Conn) error {
	producing, stop := context.WithTimeout(ctx, b.live+crowdWarm)
	defer stop()
	var group errgroup.Group
	var first *producer
	for i, name := range topics {
		p, err := b.newProducer(name, c.Partitions)
		if err != nil {
			return err
		}
		defer p.client.Close()
		p.rate = crowdRate
		if i == 0 {
			first = p
		}
		group.Go(func() error { return p.run(producing, rand.New(rand.NewPCG(seed, uint64(i)))) }) //nolint:gosec // made-up data
	}
	waits, err := first.watch(ctx, conn, producing.Done())
	stop()
	if err := errors.Join(err, group.Wait()); err != nil {
		return err
	}
	waits = waits[min(len(waits), int(crowdWarm/probeEvery)*c.Partitions):]
	if len(waits) < 100 {
		return fmt.Errorf("only %d samples", len(waits))
	}
	slices.Sort(waits)
	c.P99, c.Rate = waits[int(0.99*float64(len(waits)-1))], float64(first.records)/(b.live+crowdWarm).Seconds()
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
