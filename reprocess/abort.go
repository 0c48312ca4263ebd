package reprocess

import (
	"context"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// abort ends a candidate before its flip; its controller removes what is left of it.
func (c *Controller) abort(ctx context.Context, a ledger.Actor, ref job.Ref, args ledger.Args) error {
	return c.overRows(ctx, ledger.Abort, ref, args, func(tx *pg.Tx) error { return c.abortIn(ctx, tx, a, ref) })
}

func (c *Controller) abortIn(ctx context.Context, tx *pg.Tx, a ledger.Actor, ref job.Ref) error {
	if _, err := a.Begin(ctx, tx, ref.Job); err != nil {
		return err
	}
	st, err := ledger.ReadState(ctx, tx, ref)
	if err != nil || st.Phase == job.Aborted {
		return err
	}
	onlyFlips := st.Phase == job.Standby && st.FlipOnly && st.Open()
	switch {
	case onlyFlips:
	case st.IsArm():
		return st.RefuseArm()
	case ledger.Candidate(st.Phase):
		if err := stepVersion(ctx, tx, ref, st.Phase, ledger.AbortAsked); err != nil {
			return err
		}
	default:
		return ledger.RefuseFor(job.ExitConflict, abortInstead(st), reason.CannotAbort(ref, st.Phase))
	}
	aborted := reason.AbortedBy(ref, a.By)
	answer := ledger.Answer{Code: job.ExitFailed, Reason: aborted, Next: "kappactl deploy FILE"}
	if err := ledger.EndDeployment(ctx, tx, st.ID, ledger.Aborted, answer); err != nil {
		return err
	}
	e := st.Entry(ledger.EventAbort, aborted)
	e.By, e.Role = a.By, a.Role
	return ledger.AddEvent(ctx, tx, e)
}

func abortInstead(st *ledger.State) string {
	if st.Phase == job.Live {
		return st.RollbackCommand()
	}
	return "kappactl status " + st.Job
}
