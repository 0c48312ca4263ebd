package reprocess

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// flipSettles is how long after a flip a snapshot that holds it may look older: it was taken while an older transaction ran, and the
// moment of the flip is known to slowLock.
const flipSettles = 2 * slowLock

// errMayHoldFlip is in the refusal of a retire that another try may heal.
var errMayHoldFlip = errors.New("the snapshots may hold the flip")

// retire marks a version as retiring; its controller stops the work and removes what is left of it.
func (c *Controller) retire(ctx context.Context, a actor, ref job.Ref, args Args) error {
	for {
		err := c.overRows(ctx, Retire, ref, func(tx *pg.Tx) error { return c.retireIn(ctx, tx, a, ref, args) })
		if err == nil {
			c.hit(FaultRetireMarked)
		}
		if !errors.Is(err, errMayHoldFlip) || !sleep(ctx, c.config.RetryEvery) {
			return err
		}
	}
}

func (c *Controller) retireIn(ctx context.Context, tx *pg.Tx, a actor, ref job.Ref, args Args) error {
	if _, err := a.begin(ctx, tx, ref.Job); err != nil {
		return err
	}
	st, err := readState(ctx, tx, ref)
	if err != nil || st.Phase == job.Retiring || st.Phase == job.Retired {
		return err
	}
	if err := c.retirable(ctx, tx, st, args); err != nil {
		return err
	}
	if err := stepVersion(ctx, tx, ref, st.Phase, RetireAsked); err != nil {
		return err
	}
	if err := endDeployment(ctx, tx, st.ID, job.Superseded, Answer{}); err != nil {
		return err
	}
	if err := targetGone(ctx, tx, ref); err != nil {
		return err
	}
	e := st.entry("retire", "%s", a.reason)
	e.By = a.by
	return addEvent(ctx, tx, e)
}

// retirable refuses to take away what readers see, may go back to, or depend on.
func (c *Controller) retirable(ctx context.Context, tx *pg.Tx, st *state, args Args) error {
	status := "kappactl status " + st.Job
	switch {
	case st.isLive():
		return refuse(job.ExitConflict, status, "%s is live: readers see it", st.ref())
	case candidate(st.Phase):
		return refuse(job.ExitConflict, fmt.Sprintf("kappactl abort %s %s", st.Job, job.Number(st.Number)), "%s was never live: abort it", st.ref())
	case st.Phase != job.Standby:
		return refuse(job.ExitConflict, status, "%s is %s", st.ref(), st.Phase)
	case st.PinnedAt != nil:
		return refuse(job.ExitConflict, fmt.Sprintf("kappactl unpin %s %s", st.Job, job.Number(st.Number)), "%s is pinned", st.ref())
	case !args.Now && st.StandbyUntil != nil && st.Now.Before(*st.StandbyUntil):
		return refuse(job.ExitConflict, fmt.Sprintf("kappactl retire %s %s --now", st.Job, job.Number(st.Number)),
			"%s is inside its rollback window until %s", st.ref(), st.StandbyUntil.UTC().Format("2006-01-02T15:04:05Z"))
	}
	if st.KeepTable {
		return nil
	}
	names, err := c.Tables.Dependants(ctx, tx, st.ref(), st.view())
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return refuse(job.ExitConflict, "drop them or let them read "+st.view().String()+" instead",
			"other relations read the table of %s: %s", st.ref(), strings.Join(names, ", "))
	}
	readers, all, err := readersSince(ctx, tx, st.ref(), st.PhaseSince)
	if err != nil {
		return err
	}
	if len(readers) == 0 {
		return nil
	}
	var again error
	if st.Now.Sub(st.PhaseSince) < flipSettles {
		again = errMayHoldFlip
	}
	return &job.Refusal{
		Code: job.ExitConflict, Next: fmt.Sprintf("kappactl retire %s %s", st.Job, job.Number(st.Number)), Err: again,
		Cause: fmt.Sprintf("readers have a snapshot open that is older than the flip%s:%s", needlessly(all), lines(readers)),
	}
}
