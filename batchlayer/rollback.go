package batchlayer

import (
	"context"
	"errors"
	"strconv"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// rollback makes readers see a kept generation again. It ends a run under way and pauses the schedule, which would show
// the same results again.
func (r *Runner) rollback(ctx context.Context, a ledger.Actor, ref job.Ref, to int) error {
	v, err := r.load(ctx, ref)
	if err != nil {
		return err
	}
	return r.whileLocked(ctx, r.telling(a), func(ctx context.Context) error {
		return r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error { return r.rollbackIn(ctx, tx, a, v, to) })
	})
}

func (r *Runner) rollbackIn(ctx context.Context, tx *pg.Tx, a ledger.Actor, v version, to int) error {
	live, err := r.lockLive(ctx, tx, a, v.Ref)
	if err != nil {
		return err
	}
	if err := canShow(ctx, tx, v.Ref, to); err != nil {
		return err
	}
	cancelled, err := r.cancelIn(ctx, tx, a, v.Ref)
	if err != nil {
		return err
	}
	if err := r.flip(ctx, tx, v.Version, live.Generation, to, generation.ShownAgain); err != nil {
		return err
	}
	paused := false
	if r.Schedules != nil {
		if paused, err = r.Schedules.PauseFor(ctx, tx, v.Job, a.By); err != nil {
			return err
		}
	}
	back := reason.BatchRolledBack(v.Ref, to, live.Generation, cancelled, paused)
	if err := ledger.AddEvent(ctx, tx, entry(a, v.Ref, ledger.EventBatchRolledBack, back)); err != nil {
		return err
	}
	next := command("list", v.Job)
	if paused {
		next = "kappactl schedule resume " + string(v.Job)
	}
	return a.Answer(ctx, tx, back, next)
}

// telling notes what a request waits for.
func (r *Runner) telling(a ledger.Actor) teller {
	return func(ctx context.Context, why reason.Reason) error { return a.NoteTrouble(ctx, r.Pool, why) }
}

// canShow refuses a generation that readers cannot be shown again.
func canShow(ctx context.Context, tx *pg.Tx, ref job.Ref, to int) error {
	all, err := generation.List(ctx, tx, ref)
	if err != nil {
		return err
	}
	state, kept := "unknown", []string{}
	for _, g := range all {
		if g.Generation == to {
			state = string(g.State)
		}
		if g.State == generation.Kept {
			kept = append(kept, strconv.Itoa(g.Generation))
		}
	}
	list := command("list", ref.Job)
	switch generation.State(state) {
	case generation.Kept:
		return nil
	case generation.Live:
		return ledger.RefuseFor(job.ExitConflict, list, reason.BatchAlreadyLive(ref, to))
	case generation.Building, generation.Retired, generation.Failed:
	}
	return ledger.RefuseFor(job.ExitConflict, list, reason.BatchNotKept(ref, to, state, kept))
}

// cancel ends the run under way.
func (r *Runner) cancel(ctx context.Context, a ledger.Actor, ref job.Ref) error {
	if _, err := r.load(ctx, ref); err != nil {
		return err
	}
	return r.whileLocked(ctx, r.telling(a), func(ctx context.Context) error {
		return r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
			if _, err := r.lockLive(ctx, tx, a, ref); err != nil {
				return err
			}
			cancelled, err := r.cancelIn(ctx, tx, a, ref)
			if err != nil {
				return err
			}
			if cancelled == nil {
				return ledger.RefuseFor(job.ExitNothing, command("list", ref.Job), reason.BatchNoneUnderWay(ref))
			}
			return a.Answer(ctx, tx, reason.BatchCancelled(ref, *cancelled, ""), command("list", ref.Job))
		})
	})
}

// cancelIn gives up the generation that is being built, and returns it; nil when none is. Its run ends by itself.
func (r *Runner) cancelIn(ctx context.Context, tx *pg.Tx, a ledger.Actor, ref job.Ref) (*int, error) {
	building, err := generation.In(ctx, tx, ref, generation.Building)
	if err != nil || building == nil {
		return nil, err
	}
	why := reason.BatchCancelled(ref, building.Generation, a.By)
	err = generation.Fail(ctx, tx, ref, building.Generation, job.ExitFailed, why)
	if errors.Is(err, generation.ErrMoved) {
		return nil, nil //nolint:nilnil // it ended by itself
	}
	if err != nil {
		return nil, err
	}
	return &building.Generation, ledger.AddEvent(ctx, tx, entry(a, ref, ledger.EventBatchCancelled, why))
}
