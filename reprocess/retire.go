package reprocess

import (
	"context"
	"errors"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// flipSettles is how long after a flip a snapshot that holds it may seem older: it was taken while an older transaction
// ran, and the moment of the flip is known to within SlowLock.
const flipSettles = 2 * ledger.SlowLock

// errMayHoldFlip is in the refusal of a retire that another try may heal.
var errMayHoldFlip = errors.New("the snapshots may hold the flip")

// retire marks a version as retiring, in one transaction; its controller stops the work and removes what is left of it.
func (c *Controller) retire(ctx context.Context, a ledger.Actor, ref job.Ref, args ledger.Args) error {
	for {
		err := c.overRows(ctx, ledger.Retire, ref, args, func(tx *pg.Tx) error {
			if _, err := a.Begin(ctx, tx, ref.Job); err != nil {
				return err
			}
			st, err := ledger.ReadState(ctx, tx, ref)
			if err != nil || st.Phase == job.Retiring || st.Phase == job.Retired {
				return err
			}
			if err := retirable(st, args); err != nil {
				return err
			}
			if err := c.unread(ctx, tx, st); err != nil {
				return err
			}
			if err := stepVersion(ctx, tx, ref, st.Phase, ledger.RetireAsked); err != nil {
				return err
			}
			if err := ledger.EndDeployment(ctx, tx, st.ID, ledger.Retired, ledger.Answer{}); err != nil {
				return err
			}
			if err := ledger.EndWindowsOver(ctx, tx, ref); err != nil {
				return err
			}
			e := st.Entry(ledger.EventRetire, a.Cause)
			e.By, e.Role = a.By, a.Role
			return ledger.AddEvent(ctx, tx, e)
		})
		if err == nil {
			c.hit(FaultRetireMarked)
		}
		if !errors.Is(err, errMayHoldFlip) || retry.Sleep(ctx, c.config.RetryEvery) != nil {
			return err
		}
	}
}

// retirable refuses to take away what readers see, may go back to, or have pinned.
func retirable(st *ledger.State, args ledger.Args) error {
	ref, status := st.Ref(), "kappactl status "+st.Job
	switch {
	case st.IsLive():
		return ledger.RefuseFor(job.ExitConflict, status, reason.IsLive(ref))
	case st.IsArm():
		return st.RefuseArm()
	case ledger.Candidate(st.Phase):
		return ledger.RefuseFor(job.ExitConflict, command("abort", ref), reason.NeverLive(ref))
	case st.Phase != job.Standby:
		return ledger.RefuseFor(job.ExitConflict, status, reason.InPhase(ref, st.Phase))
	case st.PinnedAt != nil:
		return ledger.RefuseFor(job.ExitConflict, command("unpin", ref), reason.Pinned(ref))
	case !args.Now && st.StandbyUntil != nil && st.Now.Before(*st.StandbyUntil):
		return ledger.RefuseFor(job.ExitConflict, command("retire", ref)+" --now", reason.InsideWindow(ref, *st.StandbyUntil))
	}
	return nil
}

// unread refuses to take away a table that other relations or open snapshots read.
func (c *Controller) unread(ctx context.Context, tx *pg.Tx, st *ledger.State) error {
	if st.KeepTable {
		return nil
	}
	names, err := c.Serving.Dependants(ctx, tx, st.Version(), st.View())
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return ledger.RefuseFor(job.ExitConflict, "drop them or let them read "+st.View().String()+" instead",
			reason.TableRead(st.Ref(), names))
	}
	readers, all, err := ledger.ReadersSince(ctx, tx, st.Ref(), st.PhaseSince)
	if err != nil || len(readers) == 0 {
		return err
	}
	refusal := ledger.RefuseFor(job.ExitConflict, command("retire", st.Ref()),
		reason.ReadersHold(ledger.BlockerTexts(readers), all))
	if st.Now.Sub(st.PhaseSince) < flipSettles {
		refusal.Err = errors.Join(refusal.Err, errMayHoldFlip)
	}
	return refusal
}
