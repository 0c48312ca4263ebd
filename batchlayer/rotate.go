package batchlayer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// start begins a generation for a request: it refuses what cannot be whole, rotates, and returns the generation.
func (r *Runner) start(ctx context.Context, a ledger.Actor, v version, args ledger.Args) (*generation.Row, error) {
	for n := 0; ; n++ {
		began, err := r.tryStart(ctx, a, v, args)
		if !pg.Retryable(err) && !errors.Is(err, errBaseMoved) {
			return began, err
		}
		r.Log.Info("rotation waits for locks", "job", v.Job, "version", v.Number.String(), "tries", n+1)
		if n+1 == toldAfter && pg.Retryable(err) {
			if err := a.NoteTrouble(ctx, r.Pool, reason.BatchWaitsLocks(pg.Message(err))); err != nil {
				return nil, err
			}
		}
		if err := retry.Sleep(ctx, retry.Backoff(n+1, 50*time.Millisecond, time.Second)); err != nil {
			return nil, err
		}
	}
}

// errBaseMoved is that another generation is live than the one that a run was to go on from.
var errBaseMoved = errors.New("another generation is live by now")

func (r *Runner) tryStart(ctx context.Context, a ledger.Actor, v version, args ledger.Args) (*generation.Row, error) {
	base, err := r.base(ctx, v, args)
	if err != nil {
		return nil, err
	}
	if base == nil && !args.AcceptLostDeletes {
		if err := r.deletesWhole(ctx, v); err != nil {
			return nil, err
		}
	}
	gaps, err := r.unread(ctx, v, base)
	if err != nil {
		return nil, err
	}
	var number int
	err = r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		number, err = r.rotate(ctx, tx, a, v, base, gaps)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.hit(FaultBatchRotated)
	return generation.Read(ctx, r.Pool, v.Ref, number)
}

// rotate is the transaction that begins a generation: the version's row, then its positions in the order in which
// commits lock them, so that the cut is one between commits; the generation with its cut; the epoch.
func (r *Runner) rotate(ctx context.Context, tx *pg.Tx, a ledger.Actor, v version, base *generation.Row,
	gaps unreadable,
) (int, error) {
	if err := ledger.LockTimeout(ctx, tx, r.config.LockTimeout); err != nil {
		return 0, err
	}
	if err := a.Fence(ctx, tx); err != nil {
		return 0, err
	}
	phase, err := ledger.LockVersion(ctx, tx, v.Ref)
	if err != nil {
		return 0, err
	}
	if !runnable(phase) {
		return 0, ledger.RefuseFor(job.ExitConflict, "kappactl status "+string(v.Job), reason.BatchTooEarly(v.Ref, phase))
	}
	cut, err := r.Speed.Cut(ctx, tx, v.Ref)
	if err != nil {
		return 0, err
	}
	if len(cut) == 0 {
		return 0, fmt.Errorf("%s has no positions", v.Ref)
	}
	n := generation.New{Ref: v.Ref, State: generation.Building, Request: a.Request, Keep: v.Layout.Keep}
	if base != nil {
		if live, err := generation.In(ctx, tx, v.Ref, generation.Live); err != nil || live == nil ||
			live.Generation != base.Generation {
			return 0, errors.Join(errBaseMoved, err)
		}
		n.Base = &base.Generation
	}
	for _, c := range cut {
		n.Ranges = append(n.Ranges, generation.Range{Frozen: c, Unread: gaps.within(c)})
	}
	number, err := generation.Begin(ctx, tx, n)
	if errors.Is(err, generation.ErrBuilding) {
		return 0, r.underWay(ctx, v.Ref)
	}
	if err != nil {
		return 0, err
	}
	if err := r.Speed.Rotate(ctx, tx, v.Ref, number); err != nil {
		return 0, err
	}
	return number, ledger.AddEvent(ctx, tx, entry(a, v.Ref, ledger.EventBatchStarted,
		reason.BatchStarted(v.Ref, number, n.Base)))
}

// underWay refuses a run beside another one.
func (r *Runner) underWay(ctx context.Context, ref job.Ref) error {
	building, err := generation.In(ctx, r.Pool, ref, generation.Building)
	if err != nil {
		return err
	}
	number := 0
	if building != nil {
		number = building.Generation
	}
	return ledger.RefuseFor(job.ExitConflict,
		command("status", ref.Job)+", or: "+command("cancel", ref.Job), reason.BatchUnderWay(ref, number))
}

// runnable reports whether generations of a version in the phase can be computed.
func runnable(p job.Phase) bool {
	return slices.Contains([]job.Phase{job.CatchingUp, job.CaughtUp, job.Verified, job.Live, job.Standby}, p)
}

// entry is a history entry of a version on behalf of who asked.
func entry(a ledger.Actor, ref job.Ref, kind ledger.EventKind, message reason.Reason) ledger.Entry {
	return ledger.Entry{
		Job: string(ref.Job), Number: int(ref.Number), Kind: kind, Message: message, By: a.By,
		Role: a.Role,
	}
}

// base is the live generation when the run may go on from its states; nil: it computes from scratch.
func (r *Runner) base(ctx context.Context, v version, args ledger.Args) (*generation.Row, error) {
	every := v.spec.Generations().FullEvery
	if args.Full || every == 0 {
		return nil, nil //nolint:nilnil // from scratch
	}
	live, err := generation.In(ctx, r.Pool, v.Ref, generation.Live)
	if err != nil || live == nil || longer(live.Keep, v.Layout.Keep) {
		return nil, err
	}
	full, err := generation.LastFull(ctx, r.Pool, *live)
	if err != nil || live.Now.Sub(full) >= every {
		return nil, err
	}
	return live, nil
}

// longer reports whether rows are kept now that were left out of a generation: what was deleted cannot be merged into.
func longer(was, is *job.Keep) bool {
	if !was.Limits() {
		return false
	}
	if !is.Limits() {
		return true
	}
	return was.For > 0 && (is.For == 0 || is.For > was.For) || was.From != nil &&
		(is.From == nil || is.From.Before(*was.From))
}
