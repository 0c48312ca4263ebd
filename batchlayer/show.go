package batchlayer

import (
	"context"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// show makes readers see the generation and answers, in one transaction.
func (b *build) show(ctx context.Context) error {
	err := b.whileLocked(ctx, b.tell, func(ctx context.Context) error {
		return b.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error { return b.showIn(ctx, tx) })
	})
	if err != nil {
		return err
	}
	b.hit(FaultBatchShown)
	b.Log.Info("batch generation is live", "job", b.v.Job, "version", b.v.Number.String(), "generation", b.number())
	return nil
}

// toldAfter is how many tries that met locks go by before that is told.
const toldAfter = 2

// teller notes what keeps work from going on; the zero Reason: nothing.
type teller func(context.Context, reason.Reason) error

// whileLocked repeats an act that gives up waiting for locks, and tells what it waits for.
func (*Runner) whileLocked(ctx context.Context, tell teller, act func(context.Context) error) error {
	for n := 1; ; n++ {
		err := act(ctx)
		if !pg.Retryable(err) {
			return err
		}
		if n == toldAfter {
			if err := tell(ctx, reason.BatchWaitsLocks(pg.Message(err))); err != nil {
				return err
			}
		}
		if err := retry.Sleep(ctx, retry.Backoff(n, 50*time.Millisecond, time.Second)); err != nil {
			return err
		}
	}
}

func (b *build) showIn(ctx context.Context, tx *pg.Tx) error {
	live, err := b.lockLive(ctx, tx, b.actor, b.v.Ref)
	if err != nil {
		return err
	}
	if err := b.baseIsLive(ctx, tx); err != nil {
		return err
	}
	if err := b.flip(ctx, tx, b.v.Version, live.Generation, b.number(), generation.Shown); err != nil {
		return err
	}
	shown := reason.BatchShown(b.v.Ref, b.number(), b.row.Compared, b.row.Changed, b.row.Accepted)
	if err := ledger.AddEvent(ctx, tx, entry(b.actor, b.v.Ref, ledger.EventBatchShown, shown)); err != nil {
		return err
	}
	b.hit(FaultBatchShowing)
	return b.actor.Answer(ctx, tx, shown, command("list", b.v.Job))
}

// lockLive locks what a flip of generations is conditioned on, and returns the live one.
func (r *Runner) lockLive(ctx context.Context, tx *pg.Tx, a ledger.Actor, ref job.Ref) (*generation.Row, error) {
	if err := ledger.LockTimeout(ctx, tx, r.config.LockTimeout); err != nil {
		return nil, err
	}
	if err := a.Fence(ctx, tx); err != nil {
		return nil, err
	}
	if _, err := ledger.LockVersion(ctx, tx, ref); err != nil {
		return nil, err
	}
	live, err := generation.In(ctx, tx, ref, generation.Live)
	if err == nil && live == nil {
		err = fmt.Errorf("%s has no live generation", ref)
	}
	return live, err
}

// flip moves the pointer and the states of both generations. The pointer names what the states say, or the flip is
// none.
func (r *Runner) flip(ctx context.Context, tx *pg.Tx, v job.Version, from, to int, on generation.Event) error {
	if err := generation.Move(ctx, tx, v.Ref, from, generation.Replaced); err != nil {
		return err
	}
	if err := generation.Move(ctx, tx, v.Ref, to, on); err != nil {
		return err
	}
	moved, err := r.Serving.Show(ctx, tx, v, from, to)
	if err == nil && !moved {
		err = fmt.Errorf("readers of %s do not see generation %d, which is noted as live", v.Ref, from)
	}
	return err
}
