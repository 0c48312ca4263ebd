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
)

// run is one Run of one version.
type run struct {
	*Engine
	*version
	log   *slog.Logger
	quiet *quiet
	pace  atomic.Int64 // live.every as read last
}

// Run does this agent's share of a version's work until the version asks for nothing more (paused, retiring, ended: nil)
// or ctx is done (nil). The commit in hand is finished and the claims are released before it returns. A broker or
// database that is away is waited for; an error is one that trying again does not cure.
func (e *Engine) Run(ctx context.Context, ref job.Ref) error {
	log := e.Log.With("job", ref.Job, "version", ref.Number.String())
	quiet := newQuiet(log, e.Now)
	for {
		v, err := e.loadPatiently(ctx, ref, quiet)
		if err != nil {
			return unlessDone(ctx, err)
		}
		r := &run{Engine: e, version: v, log: log, quiet: quiet}
		r.pace.Store(int64(v.spec.Live.Every))
		if err := r.loop(ctx); !errors.Is(err, errRelaned) {
			return unlessDone(ctx, err)
		}
	}
}

// errRelaned ends a run whose version got another number of lanes: it is loaded anew.
var errRelaned = errors.New("the version's lanes were changed")

// unlessDone drops what a stop caused.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

const cannotReachDatabase = "the database cannot be used"

func (e *Engine) loadPatiently(ctx context.Context, ref job.Ref, quiet *quiet) (*version, error) {
	for n := 1; ; n++ {
		v, err := e.load(ctx, ref)
		if err == nil || !pg.Unreachable(err) {
			return v, err
		}
		quiet.warn(cannotReachDatabase, err)
		if err := wait(ctx, backoff(n, e.tick(), 5*time.Second)); err != nil {
			return nil, err
		}
	}
}

// loop follows the phase of the version.
func (r *run) loop(ctx context.Context) error {
	for {
		s, err := r.standing(ctx, r.ref)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			r.quiet.warn(cannotReachDatabase, err)
			if err := wait(ctx, r.tick()); err != nil {
				return err
			}
			continue
		}
		r.quiet.over(cannotReachDatabase)
		if s.Lanes != r.lanes && s.mode(r.config.Replays) != over {
			return errRelaned
		}
		switch m := s.mode(r.config.Replays); m {
		case over:
			return nil
		case waiting, queued:
			err = wait(ctx, r.look())
		case replaying:
			err = r.replay(ctx)
		case following:
			err = r.follow(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// errMoved ends a mode because the version asks for another one.
var errMoved = errors.New("the version's phase moved on")

// during runs work while the version stays in mode m, which is looked at every often, and renew once a tick beside it. work returns nil when its ctx is
// done and an error only when going on makes no sense.
func (r *run) during(ctx context.Context, m mode, often time.Duration, renew, work func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g.Go(func() error {
		defer stop(errMoved) // work is over: so are the others
		return work(ctx)
	})
	g.Go(func() error {
		return r.each(ctx, often, func(ctx context.Context) error {
			s, err := r.standing(ctx, r.ref)
			if err != nil {
				return err
			}
			r.pace.Store(int64(s.Every))
			if s.mode(r.config.Replays) != m || s.Lanes != r.lanes {
				stop(errMoved)
			}
			return nil
		})
	})
	g.Go(func() error { return r.each(ctx, r.tick(), renew) })
	return g.Wait()
}

// each calls f every so often until ctx is done. Errors of f are said, quietly, and tried again.
func (r *run) each(ctx context.Context, often time.Duration, f func(context.Context) error) error {
	t := time.NewTicker(often)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
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
}

// hit passes a fault point.
func (r *run) hit(point string) {
	faultpoint.Hit(point)
	r.at(point)
}
