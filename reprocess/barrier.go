package reprocess

import (
	"context"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// tryAgain is why a try of a flip or of its checks came to nothing although the next one may succeed.
type tryAgain struct {
	why      reason.Reason
	notReady bool
	apart    bool   // the versions did not reach the same offsets
	next     string // the command that tries again, when it is not the verb alone
	err      error
}

func (e *tryAgain) Error() string { return e.why.Text() }
func (e *tryAgain) Unwrap() error { return e.err }

// stepVersion moves a version that the transaction has locked; a tryAgain when it is in another phase by now.
func stepVersion(ctx context.Context, tx *pg.Tx, ref job.Ref, from job.Phase, on ledger.Event) error {
	err := ledger.MoveLocked(ctx, tx, ref, from, on)
	if errors.Is(err, ledger.ErrMoved) {
		return &tryAgain{why: reason.PhaseChanged(ref, from, ""), err: err}
	}
	return err
}

// heals reports whether a new try may succeed.
func heals(err error) bool {
	var t *tryAgain
	return errors.As(err, &t)
}

// holder names a barrier, never twice.
func (c *Controller) holder(ref job.Ref) string {
	return fmt.Sprintf("%s %x %x", ref, c.Now().UnixNano(), c.rand.int64n(1<<40))
}

// checksBarrier is the barrier over two versions, as the controller is configured.
func (c *Controller) checksBarrier() checks.Barrier {
	return checks.Barrier{
		Pool: c.Pool, Positions: c.Speed, HoldFor: c.config.HoldFor, PollEvery: c.config.PollEvery, Log: c.Log,
		Reached: func() { c.hit(FaultPromoteHeld) },
	}
}

// barrier stops both versions at the same offsets and returns when they are there, with the moment at which that was
// seen. The caller releases it.
func (c *Controller) barrier(ctx context.Context, by string, a, b job.Ref) (ledger.Boundary, error) {
	if err := c.checksBarrier().Stop(ctx, by, a, b); err != nil {
		return ledger.Boundary{}, missed(err)
	}
	return ledger.ReadBoundary(ctx, c.Pool)
}

// release ends a barrier, also when ctx is over.
func (c *Controller) release(ctx context.Context, by string) { c.checksBarrier().Release(ctx, by) }
