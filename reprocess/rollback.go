package reprocess

import (
	"context"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
)

// rollback makes readers see to again, which was live before, under the same barrier and transaction as promote.
func (c *Controller) rollback(ctx context.Context, a actor, to job.Ref, args Args) (string, error) {
	tried := false
	return c.until(ctx, Rollback, to, func(ctx context.Context) (string, error) {
		st, err := readState(ctx, c.Pool, to)
		if err != nil {
			return "", err
		}
		if st.isLive() && tried && a.request == 0 {
			return fmt.Sprintf("%s is live", to), nil
		}
		tried = true
		return c.tryRollback(ctx, a, st, args)
	})
}

func (c *Controller) tryRollback(ctx context.Context, a actor, st *state, args Args) (string, error) {
	live := st.liveRef()
	behind, err := readBehind(ctx, c.Pool, st.ref())
	if err != nil {
		return "", err
	}
	if err := c.canGoBack(ctx, st, args, behind); err != nil {
		return "", err
	}
	down, _, err := c.down(ctx, live)
	if err != nil {
		return "", err
	}
	f := &flip{actor: a, st: st, from: live, args: args, back: true}
	if !down && !live.Adopted() && (!args.Stale || behind.moves(st)) {
		f.by = c.holder(st.ref())
		text, err := c.run(ctx, f)
		var t *tryAgain
		if !args.Stale || !errors.As(err, &t) || !t.apart {
			return text, err
		}
		f.by = ""
	}
	if args.Stale {
		f.behind = behind.String()
	}
	return c.run(ctx, f)
}

// canGoBack refuses a version that readers cannot go back to, or not without losing what came since.
func (c *Controller) canGoBack(ctx context.Context, st *state, args Args, behind behind) error {
	status := "kappactl status " + st.Job
	switch {
	case st.Live == nil:
		return refuse(job.ExitConflict, status, "job %q has no live version to roll back from", st.Job)
	case st.isLive():
		return refuse(job.ExitConflict, status, "%s is live already", st.ref())
	case st.Phase != job.Standby:
		return refuse(job.ExitConflict, status, "%s is %s and not standby: readers cannot go back to it", st.ref(), st.Phase)
	case args.Stale:
		return nil
	}
	force := fmt.Sprintf("kappactl rollback %s %s --stale", st.Job, job.Number(st.Number))
	if st.ref().Adopted() {
		return refuse(job.ExitUnhealthy, force, "%s is %s as it was adopted: nothing has been written to it by kappactl, so going back to it loses what came since",
			st.ref(), job.ViewName{Schema: st.ViewSchema, Name: st.ref().Table()})
	}
	if st.StaleSince != nil {
		return refuse(job.ExitUnhealthy, force, "%s is standby (stale since %s): %s; it is %s; going back to it loses what came since",
			st.ref(), st.StaleSince.UTC().Format("2006-01-02T15:04:05Z"), st.Reason, behind)
	}
	if st.PausedAt != nil {
		return refuse(job.ExitUnhealthy, force+", or: kappactl resume "+st.Job,
			"%s is standby and paused since %s; it is %s; going back to it loses what came since",
			st.ref(), st.PausedAt.UTC().Format("2006-01-02T15:04:05Z"), behind)
	}
	v, err := freshVerdict(ctx, c.Pool, st.ref())
	if err != nil {
		return err
	}
	switch v.Verdict {
	case job.Unhealthy:
		return refuse(job.ExitUnhealthy, force, "%s is standby and unhealthy: %s", st.ref(), v.Reason)
	case job.Stalled, job.Lagging, job.NotConverging, job.BlockedByTxn:
		return refuse(job.ExitNotCaughtUp, force, "%s is standby and %s: %s; it is %s; going back to it loses what came since",
			st.ref(), v.Verdict, v.Reason, behind)
	case job.Unknown, job.Starting, job.ReplayingRanges, job.Holding, job.Ready:
	}
	return nil
}
