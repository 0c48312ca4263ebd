package cli

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/batchlayer/archiver"
	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/abhttp"
	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/hooks"
	"github.com/kappactl/kappactl/internal/httpapi"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/programs"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/serving"
	"github.com/kappactl/kappactl/speedlayer"
)

// wire joins the parts of an agent.
func (a *app) wire(s config.Settings, brokers kafka.Config, admin *kafka.Admin, pool *pg.Pool, of identity,
	logger *slog.Logger,
) *wired {
	named := logger.With("agent", of.id)
	w := &wired{}
	metrics := &speedlayer.Metrics{}
	brokers.FetchedBytes = &atomic.Int64{}
	w.http = a.pages(s, brokers, admin, pool, of, metrics, named)
	metrics.Committed = func(_ job.Ref, _ int, took time.Duration) { w.http.Committed(took) }
	locations := locationsOf(s)
	shelf := archive.NewShelf(pool, locations, s.Agent.Temp, shelfBytes(of.spill))
	engine := speedlayer.New(speedlayer.Deps{
		Pool: pool, Kafka: brokers, Admin: admin, Agent: of.id,
		Living: func(ctx context.Context) ([]string, error) { return agent.IDs(ctx, pool, agent.AliveWithin) },
		Log:    named, Now: a.sys.Now, Metrics: metrics, Shelf: shelf,
	}, speedlayer.Config{
		Lease: s.Agent.Lease, Timeout: answerWithin(s.Agent.Lease), Memory: s.Agent.Memory,
		Temp: s.Agent.Temp, Spill: of.spill, Replays: s.Agent.Replays,
	})
	w.hooks = a.hooks(s, pool, of.id, named, of.random)
	controller := reprocess.NewController(reprocess.Deps{
		Pool: pool, Brokers: admin, History: archiveLog(admin, shelf, false), Speed: &speedlayer.Store{}, Engines: engines(),
		Serving: serving.New(serving.Config{}),
		Hooks:   w.hooks, Experiments: abtest.Store{}, Log: named, Now: a.sys.Now, Rand: of.random,
	}, reprocess.Config{Replays: s.Agent.Replays, ChecksRole: s.Checks.Role})
	w.archiver = archiver.New(archiver.Deps{
		Pool: pool, Kafka: brokers, Brokers: admin, Locations: locations, Log: named,
		Now: a.sys.Now,
	},
		archiver.Config{Temp: s.Agent.Temp, Memory: archiveMemory(s.Agent.Memory), KeepReplaced: s.Archive.KeepReplaced})
	w.scheduler = schedule.New(schedule.Deps{Pool: pool, Log: named}, schedule.Config{})
	batches := batchlayer.New(batchlayer.Deps{
		Pool: pool, Brokers: admin, Speed: &speedlayer.Store{}, Serving: serving.New(serving.Config{}),
		Schedules: schedule.Store{}, Log: named, Now: a.sys.Now,
	}, batchlayer.Config{ChecksRole: s.Checks.Role})
	experiments := abtest.New(abtest.Deps{
		Pool: pool, Serving: serving.New(serving.Config{}),
		Topics: rewardTopics{kafka: brokers, admin: admin, now: a.sys.Now}, Log: named, Now: a.sys.Now,
	}, abtest.Config{ChecksRole: s.Checks.Role})
	work := slices.Concat(controller.Work(), programRunner(s, of, pool, admin, named, a.sys.Now).Work(), batches.Work(),
		experiments.Work(), []agent.Work{w.archiver.Work()})
	w.agent = agent.New(agent.Deps{Pool: pool, Runner: engine, Work: work, Log: logger, Now: a.sys.Now}, agent.Config{
		ID: of.id, Release: release, HTTP: of.address, Capacity: runtime.NumCPU(), Dialect: query.Dialect,
		Poll: s.Agent.Poll, Heartbeat: s.Agent.Heartbeat, Lease: s.Agent.Lease, Hooks: hooks.Digests(hooksOf(s)),
		Programs: s.Agent.Programs,
	})
	return w
}

// pages are the HTTP pages of an agent: health, metrics and experiments.
func (a *app) pages(s config.Settings, brokers kafka.Config, admin *kafka.Admin, pool *pg.Pool, of identity,
	metrics *speedlayer.Metrics, named *slog.Logger,
) *httpapi.Server {
	return httpapi.New(httpapi.Deps{
		Ready: func(ctx context.Context) error { return readyToWork(ctx, pool, admin, of.id, s.Agent.Lease) },
		Versions: func(ctx context.Context) ([]httpapi.Version, error) {
			return versionsFor(ctx, reprocess.NewStore(pool))
		},
		Archived:  func(ctx context.Context) ([]httpapi.Archived, error) { return archivedFor(ctx, pool, a.sys.Now()) },
		Scheduled: func(ctx context.Context) ([]httpapi.Scheduled, error) { return scheduledFor(ctx, pool, a.sys.Now()) },
		Layers:    func(ctx context.Context) ([]httpapi.Layers, error) { return layersFor(ctx, pool) },
		Work:      func() httpapi.Work { return workOf(metrics, brokers.FetchedBytes.Load()) },
		Experiments: abhttp.New(abhttp.Deps{
			Pool: pool, Router: abtest.NewRouter(pool, a.sys.Now), Log: named, Now: a.sys.Now, Token: of.token,
		}),
		Profiles: of.profiles,
	})
}

// programRunner runs the programs of jobs that the settings of the agent allow.
func programRunner(s config.Settings, of identity, pool *pg.Pool, admin *kafka.Admin, logger *slog.Logger,
	now func() time.Time,
) *programs.Runner {
	return programs.NewRunner(programs.Deps{
		Pool: pool, Positions: speedlayer.Direct{}, Brokers: admin, Agent: of.id, Log: logger, Now: now,
	}, programs.Config{
		Allow: s.Agent.Programs, Brokers: s.Brokers, DSN: string(cmp.Or(s.Agent.ProgramDSN, s.DSN)), Schema: s.Schema,
		Temp:  s.Agent.Temp,
		Lease: s.Agent.Lease,
	})
}
