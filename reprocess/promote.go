package reprocess

import (
	"context"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
)

// promote makes readers see ref: checks at one snapshot, then the flip under a barrier, tried until the deadline.
func (c *Controller) promote(ctx context.Context, a actor, ref job.Ref, args Args) (string, error) {
	tried, began := false, c.Now()
	agreed := c.agreement(a)
	return c.until(ctx, Promote, ref, func(ctx context.Context) (string, error) {
		st, err := readState(ctx, c.Pool, ref)
		if err != nil {
			return "", err
		}
		if st.isLive() && tried && a.request == 0 {
			return fmt.Sprintf("%s is live", ref), nil // the commit whose outcome was not known
		}
		tried = true
		if c.Now().Sub(began) < c.config.FirstSample {
			if err := c.sampledFirst(ctx, st); err != nil {
				return "", err
			}
		}
		return c.tryPromote(ctx, a, st, args, agreed)
	})
}

// sampledFirst holds back judgement on a version that catches up while its numbers are those of an agent that is gone.
func (c *Controller) sampledFirst(ctx context.Context, st *state) error {
	if st.Phase != job.CatchingUp || st.PausedAt != nil {
		return nil
	}
	v, err := freshVerdict(ctx, c.Pool, st.ref())
	if err != nil {
		return err
	}
	switch v.Verdict {
	case job.Ready: // its phase follows at once
	case job.Unknown, job.Starting, job.Stalled: // workers may be about to take it up
	case job.Unhealthy, job.BlockedByTxn, job.ReplayingRanges, job.NotConverging, job.Lagging, job.Holding:
		st.Verdict, st.Reason = v.Verdict, v.Reason
		return nil
	}
	return &tryAgain{cause: fmt.Sprintf("%s is %s: %s", st.ref(), v.Verdict, v.Reason), notReady: true}
}

func (c *Controller) tryPromote(ctx context.Context, a actor, st *state, args Args, agreed func(context.Context, *flip) error) (string, error) {
	if err := promotable(st); err != nil {
		return "", err
	}
	live := st.liveRef()
	down, why, err := c.down(ctx, live)
	if err != nil {
		return "", err
	}
	if down && !args.LiveIsDown {
		return "", refuse(job.ExitUnhealthy, fmt.Sprintf("kappactl promote %s %s --live-is-down", st.Job, job.Number(st.Number)),
			"%s, which is live, cannot be compared with %s: %s", live, st.ref(), why)
	}
	accepted := st.options().AcceptShorterHistory
	if args.AcceptShorterHistory != "" {
		accepted = args.AcceptShorterHistory
	}
	positions, err := c.Positions.Positions(ctx, c.Pool, st.ref())
	if err != nil {
		return "", err
	}
	if _, err := c.coverage(ctx, c.Pool, live, st.ref(), &st.spec, "", covered(positions), accepted); err != nil {
		return "", err
	}
	f := &flip{actor: a, st: st, from: live, args: args}
	if live != nil && !down && !live.Adopted() { // what was adopted has no offsets to be stopped at
		f.by = c.holder(st.ref())
	}
	if err := agreed(ctx, f); err != nil {
		return "", err
	}
	if err := c.checkedForFlip(ctx, st, down); err != nil {
		return "", err
	}
	return c.run(ctx, f)
}

// promotable refuses what cannot be promoted, whatever is tried.
func promotable(st *state) error {
	status := "kappactl status " + st.Job
	switch {
	case st.isLive():
		return refuse(job.ExitConflict, status, "%s is live already", st.ref())
	case st.ref().Adopted():
		return refuse(job.ExitConflict, fmt.Sprintf("kappactl rollback %s %s --stale", st.Job, job.Number(st.Number)),
			"%s was adopted and is not kept up: readers can only go back to it", st.ref())
	case st.Phase == job.Staged || st.Phase == job.Replaying || st.Phase == job.Building || st.Phase == job.CatchingUp:
		return refuse(job.ExitNotCaughtUp, fmt.Sprintf("kappactl wait %s %s --for verified", st.Job, job.Number(st.Number)),
			"%s is %s: %s: %s", st.ref(), st.Phase, st.Verdict, st.Reason)
	case st.Phase != job.CaughtUp && st.Phase != job.Verified && st.Phase != job.Standby:
		return refuse(job.ExitConflict, status, "%s is %s", st.ref(), st.Phase)
	case st.PausedAt != nil:
		return refuse(job.ExitConflict, fmt.Sprintf("kappactl resume %s %s", st.Job, job.Number(st.Number)), "%s is paused", st.ref())
	case st.Verdict == job.Unhealthy:
		return unhealthyRefusal(st, Judged{st.Verdict, st.Reason})
	case st.Phase == job.Standby && !st.open():
		return nil // named by a person: it is compared with what is live now
	case (st.Live == nil) != (st.Previous == nil) || (st.Live != nil && *st.Live != *st.Previous):
		return liveChanged(st, st.Live)
	}
	return nil
}

// down says that the live version does not move, so that no barrier over it can be reached.
func (c *Controller) down(ctx context.Context, live *job.Ref) (bool, string, error) {
	if live == nil {
		return false, "", nil
	}
	st, err := readState(ctx, c.Pool, *live)
	if err != nil {
		return false, "", err
	}
	switch {
	case st.StaleSince != nil:
		return true, fmt.Sprintf("it stopped at %s: %s", st.StaleSince.UTC().Format("2006-01-02T15:04:05Z"), st.Reason), nil
	case st.PausedAt != nil:
		return true, "it is paused", nil
	case st.Verdict == job.Stalled:
		return true, "it is stalled: " + st.Reason, nil
	}
	return false, "", nil
}

// checkedForFlip runs the checks unless they passed a moment ago. A version that was live before only flips.
func (c *Controller) checkedForFlip(ctx context.Context, st *state, liveDown bool) error {
	if st.Phase == job.Standby {
		return nil
	}
	fresh, err := checkedSince(ctx, c.Pool, st, c.config.CheckFresh)
	if err != nil || fresh {
		return err
	}
	bad, err := c.checkBefore(ctx, st, liveDown)
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		a := checksAnswer(st.ref(), bad)
		return refuse(a.Code, a.Next, "%s", a.Text)
	}
	return nil
}
