package speedlayer

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
)

// run is one Run of one version.
type run struct {
	*Engine
	*version
	log    *slog.Logger
	quiet  *quiet
	larder larder
	pace   atomic.Int64 // live.every as read last
	kept   atomic.Bool  // whether the job keeps an archive, as read last

	troubles troubles

	broken bool // the query could not be compiled the last time; owned by Run's goroutine
}

// Run does this agent's share of a version's work until the version asks for nothing more (paused, retiring, ended:
// nil) or ctx is done (nil). The commit in hand is finished and the claims are released before it returns. A broker or
// database that is away is waited for; an error is one that trying again does not cure.
func (e *Engine) Run(ctx context.Context, ref job.Ref) error {
	log := e.Log.With("job", ref.Job, "version", ref.Number.String())
	r := &run{Engine: e, version: &version{ref: ref}, log: log, quiet: newQuiet(log, e.Now)}
	defer r.quit(ctx)
	if err := r.loadPatiently(ctx); err != nil {
		return unlessDone(ctx, err)
	}
	r.pace.Store(int64(r.spec.Live.Every))
	r.kept.Store(r.spec.Archive != nil)
	if !r.layout.Lambda {
		return unlessDone(ctx, r.loop(ctx))
	}
	within, cancel := context.WithCancel(ctx)
	builds := make(chan struct{})
	go func() {
		defer close(builds)
		r.builds(within)
	}()
	err := r.loop(ctx)
	cancel()
	<-builds
	return unlessDone(ctx, err)
}

// unlessDone drops what a stop caused.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

const cannotReachDatabase = "the database cannot be used"

// loadPatiently reads the version, as soon as that is possible.
func (r *run) loadPatiently(ctx context.Context) error {
	for n := 1; ; n++ {
		v, err := r.read(ctx, r.ref)
		if err == nil {
			r.version = v
			return nil
		}
		if errors.Is(err, errNoVersion) {
			return err
		}
		if err := r.later(ctx, n, err); err != nil {
			return err
		}
	}
}

const cannotStart = "the work on a version cannot start and is tried again"

// later waits before the work is started again, after n failures in a row, the last of them err.
func (r *run) later(ctx context.Context, n int, err error) error {
	what := cannotStart
	if pg.Unreachable(err) {
		what = cannotReachDatabase
	}
	r.quiet.warn(what, err)
	r.failed(ctx, starting, reason.StartFails, err)
	if err := r.tell(ctx); err != nil && ctx.Err() == nil {
		r.quiet.warn(cannotReachDatabase, err)
	}
	return retry.Sleep(ctx, retry.Backoff(n, r.tick(), toldEvery))
}

// started notes that the work has begun.
func (r *run) started() {
	r.troubles.works(starting)
	r.quiet.over(cannotStart)
}

// loop follows the phase of the version.
func (r *run) loop(ctx context.Context) error {
	again := false // the query could not be compiled the last time either
	for failures := 0; ; {
		s, err := r.standing(ctx, r.ref)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			r.quiet.warn(cannotReachDatabase, err)
			if err := retry.Sleep(ctx, r.tick()); err != nil {
				return err
			}
			continue
		}
		r.quiet.over(cannotReachDatabase)
		switch m := s.mode(r.config.Replays); m {
		case over:
			return nil
		case waiting:
			err = retry.Sleep(ctx, r.look())
		case queued: // the further back, the longer
			err = retry.Sleep(ctx, r.look()*time.Duration(min(1+s.Before-r.config.Replays, mostLooks)))
		case replaying:
			err = r.replay(ctx)
		case following:
			err = r.follow(ctx)
		}
		if !again || !r.broken { // what keeps it from starting goes on failing
			r.troubles.none()
		}
		again = r.broken
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			failures = 0
		default:
			failures++
			if err := r.later(ctx, failures, err); err != nil {
				return err
			}
		}
	}
}

// mostLooks is the largest number of polls by the next replay in the queue before one far behind polls again.
const mostLooks = 20

// errMoved ends a mode because the version asks for another one.
var errMoved = errors.New("the version's phase moved on")

// during runs work until the version leaves mode m, and renew once a tick beside it.
func (r *run) during(ctx context.Context, m mode, often time.Duration, renew, work func(context.Context) error) error {
	still := func(ctx context.Context) (bool, error) {
		s, err := r.standing(ctx, r.ref)
		if err != nil {
			return true, err
		}
		r.pace.Store(int64(s.Every))
		r.kept.Store(s.Archive)
		return s.mode(r.config.Replays) == m, nil
	}
	return r.while(ctx, still, often, renew, work)
}

// while runs work until still returns false; it is asked at the given interval. renew runs once a tick beside it. work
// returns nil when its ctx is done and an error only when going on makes no sense.
func (r *run) while(ctx context.Context, still func(context.Context) (bool, error), often time.Duration, renew,
	work func(context.Context) error,
) error {
	g, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g.Go(func() error {
		defer stop(errMoved) // work is over: so are the others
		return work(ctx)
	})
	g.Go(func() error {
		return r.each(ctx, pauses(often), func(ctx context.Context) error {
			goOn, err := still(ctx)
			if err != nil {
				return err
			}
			if !goOn {
				stop(errMoved)
			}
			return nil
		})
	})
	g.Go(func() error {
		return r.each(ctx, pauses(r.tick()), func(ctx context.Context) error { return r.noted(ctx, renewing, renew) })
	})
	return g.Wait()
}

// noted does work, notes whether it fails, and writes what fails of the run.
func (r *run) noted(ctx context.Context, w work, do func(context.Context) error) error {
	err := do(ctx)
	if err != nil && !errors.Is(err, errMoved) {
		r.failed(ctx, w, reason.ClaimFails, err)
	} else {
		r.troubles.works(w)
	}
	return errors.Join(err, r.tell(ctx))
}

// pauses waits for d each time.
func pauses(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error { return retry.Sleep(ctx, d) }
}

// each calls f after each wait, until ctx is done. Errors of f are said, quietly, and tried again.
func (r *run) each(ctx context.Context, wait, f func(context.Context) error) error {
	for wait(ctx) == nil {
		within, cancel := context.WithTimeout(ctx, r.config.Timeout)
		err := f(within)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			r.quiet.warn(cannotReachDatabase, err)
		default:
			r.quiet.over(cannotReachDatabase)
		}
	}
	return nil
}

// hit passes a fault point.
func (r *run) hit(point string) {
	faultpoint.Hit(point)
	r.at(point)
}
