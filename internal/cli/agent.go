package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/hooks"
	"github.com/kappactl/kappactl/internal/httpapi"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/serving"
	"github.com/kappactl/kappactl/speedlayer"
)

// What the packages want of one another, and who gives it.
var (
	_ reprocess.Topics    = (*kafka.Admin)(nil)
	_ reprocess.Log       = (*kafka.Admin)(nil)
	_ reprocess.Replays   = (*speedlayer.Store)(nil)
	_ reprocess.Queue     = (*speedlayer.Store)(nil)
	_ reprocess.Positions = (*speedlayer.Store)(nil)
	_ reprocess.Gaps      = (*speedlayer.Store)(nil)
	_ reprocess.Expiry    = (*speedlayer.Store)(nil)
	_ reprocess.Tables    = (*serving.Store)(nil)
	_ reprocess.Views     = (*serving.Store)(nil)
	_ reprocess.Hooks     = (*hooks.Service)(nil)
	_ agent.Runner        = (*speedlayer.Engine)(nil)
	_ agent.Controller    = (*reprocess.Controller)(nil)
)

// host runs an agent and its HTTP server, with profiles or without, until ctx ends, and calls ready once both work. The end of ctx
// is no error.
func (a *app) host(ctx context.Context, s config.Settings, profiles bool, logger *slog.Logger, ready func(http string)) (err error) {
	brokers, err := kafkaConfig(ctx, s)
	if err != nil {
		return err
	}
	admin, err := kafka.NewAdmin(brokers)
	if err != nil {
		return err
	}
	defer admin.Close()
	if err := letIn(ctx, admin); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) //nolint:gosec // jitter
	id := agentID(random)
	pool, err := a.agentPool(ctx, s, id)
	if err != nil {
		return err
	}
	defer pool.Close()
	listener, err := net.Listen("tcp", s.HTTP)
	if err != nil {
		return &job.Refusal{Code: job.ExitUsage, Cause: fmt.Sprintf("listen on %s: %s", s.HTTP, err), Next: "give another address with --http", Err: err}
	}
	spill, err := newSpillFolder(s.Agent.Temp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spill.Close()) }()
	s.Agent.Temp = spill.path
	w := a.wire(s, brokers, admin, pool, identity{
		id: id, address: listener.Addr().String(), profiles: profiles, random: random, spill: spill.room(s.Agent.Memory, a.sys.free, logger),
	}, logger)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.http.Serve(ctx, listener) })
	group.Go(func() error { return w.agent.Run(ctx) })
	group.Go(func() error { return w.hooks.Run(ctx) })
	group.Go(func() error {
		select {
		case <-w.agent.Ready():
			ready(listener.Addr().String())
		case <-ctx.Done():
		}
		return nil
	})
	return group.Wait()
}

// letIn refuses to start an agent that the brokers will not let in: nothing but a person changes that. Brokers that do not
// answer may come back.
func letIn(ctx context.Context, admin *kafka.Admin) error {
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := admin.Ping(short); kafka.Refused(err) {
		return err
	}
	return nil
}

// agentPool opens a pool that is large enough for the work of many versions, for the agent of that id.
func (a *app) agentPool(ctx context.Context, s config.Settings, id string) (*pg.Pool, error) {
	if err := s.NeedDSN(); err != nil {
		return nil, err
	}
	c, err := pgConfig(ctx, s)
	if err != nil {
		return nil, err
	}
	c.MaxConns, c.Application, c.Answer = 32, "kappactl agent", answerWithin(s.Agent.Lease)
	c.Idle, c.Mark = max(s.Agent.Lease, 3*time.Second), id
	pool, err := pg.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	if err = pg.CheckServer(ctx, pool); err == nil {
		err = pg.CheckSchema(ctx, pool)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// aliveWithin is how young the heartbeat of a living agent is.
const aliveWithin = 5 * time.Second

// answerWithin is how long an agent waits for the answer to a statement: three leases, at least 10 s and at most 30 s.
func answerWithin(lease time.Duration) time.Duration {
	return min(max(3*lease, 10*time.Second), 30*time.Second)
}

// wired is one agent with its parts.
type wired struct {
	agent *agent.Agent
	http  *httpapi.Server
	hooks *hooks.Service
}

// identity is what an agent is told about itself.
type identity struct {
	id       string
	address  string
	profiles bool
	random   *rand.Rand
	spill    int64 // bytes that its queries may take on the disk
}

// wire joins the parts of an agent.
func (a *app) wire(s config.Settings, brokers kafka.Config, admin *kafka.Admin, pool *pg.Pool, of identity, logger *slog.Logger) *wired {
	named := logger.With("agent", of.id)
	w := &wired{}
	metrics := &speedlayer.Metrics{}
	w.http = httpapi.New(httpapi.Deps{
		Ready: func(ctx context.Context) error { return readyToWork(ctx, pool, admin) },
		Versions: func(ctx context.Context) ([]httpapi.Version, error) {
			return versionsFor(ctx, reprocess.NewStore(pool))
		},
		Work:     func() httpapi.Work { return workOf(metrics) },
		Profiles: of.profiles,
	})
	metrics.Committed = func(_ job.Ref, _ int, took time.Duration) { w.http.Committed(took) }
	engine := speedlayer.New(speedlayer.Deps{
		Pool: pool, Kafka: brokers, Agent: of.id, Alive: func(ctx context.Context) (int, error) { return agent.Alive(ctx, pool, aliveWithin) },
		Log: named, Now: a.sys.Now, Metrics: metrics,
	}, speedlayer.Config{Lease: s.Agent.Lease, Timeout: answerWithin(s.Agent.Lease), Memory: s.Agent.Memory, Temp: s.Agent.Temp, Spill: of.spill, Replays: s.Agent.Replays})
	store := &speedlayer.Store{}
	serve := serving.New(serving.Config{})
	w.hooks = a.hooks(s, pool, of.id, named, of.random)
	controller := reprocess.NewController(reprocess.Deps{
		Pool: pool, Topics: admin, Records: admin, Replays: store, Queue: store, Positions: store, Gaps: store,
		Tables: serve, Views: serve, Removals: serve, Adoptions: serve, Expiry: store, Hooks: w.hooks, Log: named, Now: a.sys.Now, Rand: of.random,
	}, reprocess.Config{Replays: s.Agent.Replays, ChecksRole: s.Checks.Role})
	w.agent = agent.New(agent.Deps{Pool: pool, Runner: engine, Controller: controller, Log: logger, Now: a.sys.Now}, agent.Config{
		ID: of.id, Release: release, HTTP: of.address, Capacity: runtime.NumCPU(), Dialect: query.Dialect,
		Poll: s.Agent.Poll, Heartbeat: s.Agent.Heartbeat, Lease: s.Agent.Lease, Hooks: hooks.Digests(hooksOf(s)),
	})
	return w
}

// agentID names one life of one process: HOST-PID-RANDOM.
func agentID(random *rand.Rand) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d-%06x", host, os.Getpid(), random.Uint32()&0xffffff)
}

// readyToWork says why this agent could not work now.
func readyToWork(ctx context.Context, pool *pg.Pool, admin *kafka.Admin) error {
	return errors.Join(pg.CheckSchema(ctx, pool), admin.Ping(ctx))
}

func versionsFor(ctx context.Context, store *reprocess.Store) ([]httpapi.Version, error) {
	jobs, err := store.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	var out []httpapi.Version
	for _, j := range jobs {
		for _, v := range j.Versions {
			n, err := job.ParseNumber(v.Version)
			if err != nil {
				return nil, err
			}
			if v.Phase.Ended() {
				continue
			}
			partitions := make([]httpapi.Partition, 0, len(v.Partitions))
			for _, p := range v.Partitions {
				partitions = append(partitions, httpapi.Partition{
					Topic: p.Topic, ID: p.Partition, LagRecords: p.LagRecords, LagSeconds: p.LagSeconds, RecordsPerSecond: p.RecordsPerSecond,
					RetentionSeconds: secondsUntil(p.RetentionDeadline, p.SampledAt),
				})
			}
			checks := make([]httpapi.Check, 0, len(v.Checks))
			for _, k := range v.Checks {
				if k.Outcome != "" {
					checks = append(checks, httpapi.Check{Name: k.Name, Stage: k.Stage, Outcome: k.Outcome, Seconds: k.Seconds, Failures: k.Failures})
				}
			}
			out = append(out, httpapi.Version{
				Ref: job.Ref{Job: j.Job, Number: n}, Phase: v.Phase, Verdict: v.Verdict, LagRecords: v.LagRecords, LagSeconds: v.LagSeconds,
				RecordsPerSecond: v.RecordsPerSecond, Records: v.Records, DeadLetters: v.DeadLetters, Warnings: len(v.Warnings), Partitions: partitions, Checks: checks,
			})
		}
	}
	return out, nil
}

// secondsUntil is the time left at a moment; nil when there is no end.
func secondsUntil(end *time.Time, at time.Time) *float64 {
	if end == nil {
		return nil
	}
	left := max(0, end.Sub(at).Seconds())
	return &left
}

func workOf(m *speedlayer.Metrics) httpapi.Work {
	return httpapi.Work{
		Records: m.Records.Load(), Bytes: m.Bytes.Load(), DeadLetters: m.DeadLetters.Load(), Segments: m.Segments.Load(),
		Commits: m.Commits.Load(), CommitRetries: m.CommitRetries.Load(), LeaseLosses: m.LeaseLosses.Load(), Faults: m.Faults.Load(),
		ThrottledSeconds: time.Duration(m.ThrottleNanos.Load()).Seconds(),
	}
}
