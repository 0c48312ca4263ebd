package batchlayer

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Deps are what a Runner works with.
type Deps struct {
	Pool      *pg.Pool
	Brokers   Brokers
	Speed     SpeedLayer
	Serving   Serving
	Schedules Schedules // nil: there are none
	Log       *slog.Logger
	Now       func() time.Time
}

// Config bounds a Runner. Zero fields mean the defaults set in New.
type Config struct {
	Poll        time.Duration // between two polls of segments, or of what a removal waits for; default 250 ms
	LockTimeout time.Duration // of a rotation and of a flip, which are tried again; default 2 s
	AskTimeout  time.Duration // for one question to the brokers, default 10 s
	ChecksRole  string        // the PostgreSQL role that checks run as; empty: the agent's own
}

// Runner does what is asked of the batch layer and removes old generations. It is safe for concurrent use: every
// request and every generation under a claim is worked on by one call.
type Runner struct {
	Deps
	config Config
	hook   func(point string) // of tests, at every fault point
}

// New makes a Runner.
func New(d Deps, c Config) *Runner {
	c.Poll = cmp.Or(c.Poll, 250*time.Millisecond)
	c.LockTimeout = cmp.Or(c.LockTimeout, 2*time.Second)
	c.AskTimeout = cmp.Or(c.AskTimeout, 10*time.Second)
	return &Runner{Deps: d, config: c}
}

func (r *Runner) hit(point string) {
	faultpoint.Hit(point)
	if r.hook != nil {
		r.hook(point)
	}
}

// Work lists the kinds of work that a Runner does under leases.
func (r *Runner) Work() []agent.Work {
	return []agent.Work{
		{Name: "batch", Table: "kappactl.request", Open: ledger.NeedsBatch, Held: ledger.NeedsBatch, Run: r.Answer},
		{
			Name: "generation", Table: "kappactl.generation", Open: "(" + needsStatistics + " OR " + needsRemoval + ")",
			Run: r.Tend,
		},
	}
}

// Answer does what a request of the batch layer asks for and answers it, as ledger.Perform describes.
func (r *Runner) Answer(ctx context.Context, request, claim int64) error {
	return ledger.Perform(ctx, r.Pool, r.Log, request, claim, r.act)
}

func (r *Runner) act(ctx context.Context, a ledger.Actor, verb ledger.Verb, ref job.Ref, args ledger.Args) error {
	switch verb {
	case ledger.BatchRun:
		return r.run(ctx, a, ref, args)
	case ledger.BatchCancel:
		return r.cancel(ctx, a, ref)
	case ledger.BatchRollback:
		return r.rollback(ctx, a, ref, args.Generation)
	default:
		return ledger.UnknownVerb(verb)
	}
}
