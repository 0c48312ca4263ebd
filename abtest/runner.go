package abtest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Deps are what a Runner works with.
type Deps struct {
	Pool    *pg.Pool
	Serving Serving
	Topics  Topics // nil: rewards from topics cannot be read
	Log     *slog.Logger
	Now     func() time.Time
}

// Config bounds a Runner. Zero fields mean the defaults set in New.
type Config struct {
	Deadline    time.Duration // for the tries to write the view, default 60 s
	LockTimeout time.Duration // how long a try queues before readers, default 80 ms
	RetryEvery  time.Duration // between two tries, up to half more; default 200 ms
	Tick        time.Duration // between two looks at the arms, default 1 s
	ChecksRole  string        // runs the queries of job files; empty: the session's own, bounded by the rights of who deployed
	Patience    time.Duration // how long an arm may be behind before its readers go back to the control, default 30 s
}

// Runner does what is asked of experiments. It is safe for concurrent use.
type Runner struct {
	Deps
	config Config
	clock  func(ctx context.Context, db pg.DB) (time.Time, error) // of the database
}

// New makes a Runner.
func New(d Deps, c Config) *Runner {
	c.Deadline = cmp.Or(c.Deadline, time.Minute)
	c.LockTimeout = cmp.Or(c.LockTimeout, 80*time.Millisecond)
	c.RetryEvery = cmp.Or(c.RetryEvery, 200*time.Millisecond)
	c.Tick = cmp.Or(c.Tick, time.Second)
	c.Patience = cmp.Or(c.Patience, 30*time.Second)
	return &Runner{Deps: d, config: c, clock: databaseTime}
}

// Work lists the kinds of work that a Runner does under leases.
func (r *Runner) Work() []agent.Work {
	const asked = ledger.NeedsExperiment
	return []agent.Work{
		{Name: "experiment request", Table: "kappactl.request", Open: asked, Held: asked, Run: r.Answer},
		{Name: "experiment", Table: "kappactl.experiment", Open: needsWatch, Held: needsWatch, Run: r.Watch},
		{Name: "ended experiment", Table: "kappactl.experiment", Open: needsCleaning, Held: needsCleaning, Run: r.Clean},
	}
}

// Answer does what a request asks for and answers it, as ledger.Perform describes.
func (r *Runner) Answer(ctx context.Context, request, claim int64) error {
	return ledger.Perform(ctx, r.Pool, r.Log, request, claim, r.act)
}

// errDryRun ends the transaction of an act that was only to be tried: nothing stood in its way.
var errDryRun = errors.New("dry run")

func (r *Runner) act(ctx context.Context, a ledger.Actor, verb ledger.Verb, ref job.Ref, args ledger.Args) error {
	var done reason.Reason
	err := r.tries(ctx, verb, ref.Job, func(ctx context.Context) error {
		return r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
			t := &turn{r: r, tx: tx, actor: a, name: ref.Job, args: args}
			err := t.do(ctx, verb)
			done = t.outcome
			if err == nil && args.DryRun {
				err = errDryRun
			}
			return err
		})
	})
	_, refused := ledger.AnswerOf(err)
	switch {
	case errors.Is(err, errDryRun):
		return a.Answer(ctx, r.Pool, done, "")
	case err == nil:
		r.Log.Info(done.Text(), "job", ref.Job, "by", a.By)
		return nil
	case refused || errors.Is(err, ledger.ErrLost) || ctx.Err() != nil || pg.Unreachable(err):
		return err
	}
	r.Log.Error("request failed", "request", a.Request, "error", err)
	return ledger.RefuseFor(job.ExitFailed, "", reason.Error(err))
}

// tryAgain is a refusal that another try may not meet.
type tryAgain struct{ refusal *job.Refusal }

func (t *tryAgain) Error() string { return t.refusal.Error() }

// tries repeats an act that readers keep from the view's lock, or whose arms are not ready yet, with jitter, until the
// deadline.
func (r *Runner) tries(ctx context.Context, verb ledger.Verb, name job.Name, act func(context.Context) error) error {
	began := r.Now()
	for {
		err := act(ctx)
		refusal, e := r.heals(ctx, verb, name, err)
		if refusal == nil {
			return errors.Join(err, e)
		}
		if r.Now().Sub(began) >= r.config.Deadline {
			return refusal
		}
		every := r.config.RetryEvery
		if retry.Sleep(ctx, every+time.Duration(rand.Int64N(int64(every/2)))) != nil { //nolint:gosec // jitter
			return ctx.Err()
		}
	}
}

// heals returns what an act is refused with when no further try can be made; nil when another try would not help.
func (r *Runner) heals(ctx context.Context, verb ledger.Verb, name job.Name, err error) (*job.Refusal, error) {
	var again *tryAgain
	var unsure *pg.CommitError
	why := reason.CommitUnknown()
	switch {
	case errors.As(err, &again):
		return again.refusal, nil
	case errors.As(err, &unsure):
	case pg.Retryable(err):
		j, err := ledger.ReadJob(ctx, r.Pool, name)
		if err != nil {
			return nil, err
		}
		holders, err := ledger.LockHolders(ctx, r.Pool, j.View())
		if err != nil {
			return nil, err
		}
		why = reason.LockNotGranted("view", j.View(), r.config.LockTimeout, ledger.BlockerTexts(holders))
	default:
		return nil, nil
	}
	return ledger.RefuseFor(job.ExitTimeout, "kappactl ab status "+string(name),
		reason.GaveUp(string(verb), string(name), r.config.Deadline, why)), nil
}
