package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/batchlayer/archiver"
	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/hooks"
	"github.com/kappactl/kappactl/internal/httpapi"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/programs"
	"github.com/kappactl/kappactl/internal/spill"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/reprocess/engine"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/serving"
	"github.com/kappactl/kappactl/speedlayer"
)

// What the packages want of one another, and who gives it.
var (
	_ reprocess.Brokers    = (*kafka.Admin)(nil)
	_ reprocess.SpeedLayer = (*speedlayer.Store)(nil)
	_ reprocess.Serving    = (*serving.Store)(nil)
	_ reprocess.Hooks      = (*hooks.Service)(nil)
	_ agent.Runner         = (*speedlayer.Engine)(nil)
	_ archiver.Brokers     = (*kafka.Admin)(nil)

	_ programs.Positions = speedlayer.Direct{}
	_ programs.Brokers   = (*kafka.Admin)(nil)

	_ ledger.Experiments = abtest.Store{}
	_ abtest.Serving     = (*serving.Store)(nil)

	_ batchlayer.Brokers    = (*kafka.Admin)(nil)
	_ batchlayer.SpeedLayer = (*speedlayer.Store)(nil)
	_ batchlayer.Serving    = (*serving.Store)(nil)
)

// engines are the kinds of work that versions can have.
func engines() engine.Set {
	return engine.Set{job.SQL: speedlayer.Store{}, job.ProgramRun: programs.Engine{Steps: speedlayer.Direct{}}}
}

// host runs an agent and its HTTP server, with profiles or without, until ctx ends, and calls ready once both work. The
// end of ctx is no error.
func (a *app) host(ctx context.Context, s config.Settings, profiles bool, logger *slog.Logger,
	ready func(http string),
) (err error) {
	brokers, err := kafkaConfig(ctx, s)
	if err != nil {
		return err
	}
	tellOfLogin(brokers, logger)
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
	listener, token, err := listen(ctx, s)
	if err != nil {
		return err
	}
	spilled, err := spill.NewFolder(s.Agent.Temp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spilled.Close()) }()
	s.Agent.Temp = spilled.Path
	w := a.wire(s, brokers, admin, pool, identity{
		id: id, address: listener.Addr().String(), profiles: profiles, random: random, token: token,
		spill: spilled.Limit(s.Agent.Memory, a.sys.free, logger),
	}, logger)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.http.Serve(ctx, listener) })
	group.Go(func() error { return w.agent.Run(ctx) })
	group.Go(func() error { return w.hooks.Run(ctx) })
	group.Go(func() error { return w.archiver.Host(ctx) })
	group.Go(func() error { return w.scheduler.Run(ctx) })
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

// tellOfLogin logs when the brokers refuse the agent's login, and when they accept it again.
func tellOfLogin(brokers kafka.Config, logger *slog.Logger) {
	if brokers.Login != nil {
		brokers.Login.Notify = func(refused error) {
			if refused != nil {
				logger.Error("the brokers refuse the agent's login; it goes on when the password's source has another one",
					"error", refused)
				return
			}
			logger.Info("the brokers accept the agent's login again")
		}
	}
}

// listen opens the address of the HTTP server and reads the token of requests about experiments.
func listen(ctx context.Context, s config.Settings) (net.Listener, string, error) {
	token, err := s.HTTPToken.Read(ctx)
	if err != nil {
		return nil, "", &job.Refusal{
			Code: job.ExitUsage, Cause: "http_token_file: " + err.Error(),
			Next: "give a file whose first line is the token", Err: err,
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.HTTP)
	if err != nil {
		return nil, "", &job.Refusal{
			Code: job.ExitUsage, Cause: fmt.Sprintf("listen on %s: %s", s.HTTP, err),
			Next: "give another address with --http", Err: err,
		}
	}
	return listener, string(token), nil
}

// letIn refuses to start an agent that the brokers will not let in: nothing but a person changes that. Brokers that do
// not answer may come back.
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
	c := pgConfig(s)
	c.MaxConns, c.Application, c.Answer = 28, "kappactl agent", answerWithin(s.Agent.Lease)
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

// answerWithin is how long an agent waits for the answer to a statement: three leases, at least 10 s and at most 30 s.
func answerWithin(lease time.Duration) time.Duration {
	return min(max(3*lease, 10*time.Second), 30*time.Second)
}

// wired is one agent with its parts.
type wired struct {
	agent     *agent.Agent
	http      *httpapi.Server
	hooks     *hooks.Service
	archiver  *archiver.Archiver
	scheduler *schedule.Scheduler
}

// identity describes an agent to itself.
type identity struct {
	id       string
	address  string
	profiles bool
	random   *rand.Rand
	token    string // of requests about experiments
	spill    int64  // bytes that its queries may take on the disk
}

// archiveMemory is how much of an agent's memory holds records on their way to the archive, in bytes.
func archiveMemory(memory int64) int { return int(min(max(memory/8, 16<<20), 64<<20)) }

// agentID names one life of one process: HOST-PID-RANDOM.
func agentID(random *rand.Rand) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d-%06x", host, os.Getpid(), random.Uint32()&0xffffff)
}

// readyToWork returns why this agent cannot work now: the database, the brokers, or itself, when it has written no
// heartbeat for a lease.
func readyToWork(ctx context.Context, pool *pg.Pool, admin *kafka.Admin, id string, lease time.Duration) error {
	err := pg.CheckSchema(ctx, pool)
	if err == nil {
		err = agent.Beats(ctx, pool, id, lease)
	}
	return errors.Join(err, admin.Ping(ctx))
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
					Topic: p.Topic, ID: p.Partition, LagRecords: p.LagRecords, LagSeconds: p.LagSeconds,
					RecordsPerSecond: p.RecordsPerSecond,
					RetentionSeconds: secondsUntil(p.RetentionDeadline, p.SampledAt), Verdict: p.Verdict, Reason: string(p.ReasonCode),
				})
			}
			checks := make([]httpapi.Check, 0, len(v.Checks))
			for _, k := range v.Checks {
				if k.Outcome != "" {
					checks = append(checks, httpapi.Check{
						Name: k.Name, Stage: k.Stage, Outcome: k.Outcome, Seconds: k.Seconds,
						Failures: k.Failures,
					})
				}
			}
			out = append(out, httpapi.Version{
				Ref: job.Ref{Job: j.Job, Number: n}, Phase: v.Phase, Verdict: v.Verdict, LagRecords: v.LagRecords,
				LagSeconds:       v.LagSeconds,
				RecordsPerSecond: v.RecordsPerSecond, Records: v.Records, DeadLetters: v.DeadLetters, Warnings: len(v.Warnings),
				Partitions: partitions, Checks: checks,
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

func workOf(m *speedlayer.Metrics, fetched int64) httpapi.Work {
	return httpapi.Work{
		Records: m.Records.Load(), Bytes: m.Bytes.Load(), DeadLetters: m.DeadLetters.Load(), Segments: m.Segments.Load(),
		Commits: m.Commits.Load(), CommitRetries: m.CommitRetries.Load(), LeaseLosses: m.LeaseLosses.Load(),
		Faults:           m.Faults.Load(),
		FetchedBytes:     fetched,
		ThrottledSeconds: time.Duration(m.ThrottleNanos.Load()).Seconds(),
	}
}
