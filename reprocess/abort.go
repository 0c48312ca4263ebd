package reprocess

import (
	"context"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// abort ends a candidate before its flip; its controller removes what is left of it.
func (c *Controller) abort(ctx context.Context, a actor, ref job.Ref) error {
	return c.overRows(ctx, Abort, ref, func(tx *pg.Tx) error { return c.abortIn(ctx, tx, a, ref) })
}

func (c *Controller) abortIn(ctx context.Context, tx *pg.Tx, a actor, ref job.Ref) error {
	if _, err := a.begin(ctx, tx, ref.Job); err != nil {
		return err
	}
	st, err := readState(ctx, tx, ref)
	if err != nil || st.Phase == job.Aborted {
		return err
	}
	onlyFlips := st.Phase == job.Standby && st.FlipOnly && st.open()
	switch {
	case onlyFlips:
	case candidate(st.Phase):
		if err := stepVersion(ctx, tx, ref, st.Phase, AbortAsked); err != nil {
			return err
		}
	default:
		return refuse(job.ExitConflict, abortInstead(st), "%s is %s: it can no longer be aborted", ref, st.Phase)
	}
	text := fmt.Sprintf("%s was aborted by %s", ref, a.by)
	if err := endDeployment(ctx, tx, st.ID, job.DeployAborted, Answer{Code: job.ExitFailed, Text: text, Next: "kappactl deploy FILE"}); err != nil {
		return err
	}
	e := st.entry("abort", "%s", text)
	e.By = a.by
	return addEvent(ctx, tx, e)
}

func abortInstead(st *state) string {
	if st.Phase == job.Live {
		return "kappactl rollback " + st.Job
	}
	return "kappactl status " + st.Job
}
