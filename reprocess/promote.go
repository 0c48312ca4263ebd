package reprocess

import (
	"context"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// promote makes readers see ref. A try refuses what cannot be promoted, compares the history that the candidate and
// live cover, asks the hooks, runs the checks at one snapshot, stops both versions at the same offsets and flips in one
// transaction. Tries repeat until the deadline while the next one may succeed.
func (c *Controller) promote(ctx context.Context, a ledger.Actor, ref job.Ref, args ledger.Args) error {
	began, agreed, tried := c.Now(), c.agreement(a), false
	return c.until(ctx, ledger.Promote, ref, func(ctx context.Context) error {
		st, err := ledger.ReadState(ctx, c.Pool, ref)
		if err != nil {
			return err
		}
		if st.IsLive() && tried && a.Request == 0 {
			return nil // by the commit whose outcome was unknown
		}
		tried = true
		if err := c.sampledSince(ctx, st, began); err != nil {
			return err
		}
		if err := promotable(st); err != nil {
			return err
		}
		down, err := c.liveDown(ctx, st, args)
		if err != nil {
			return err
		}
		if err := c.coversLive(ctx, st, args); err != nil {
			return err
		}
		f := &flip{c: c, actor: a, st: st, from: st.LiveRef(), args: args, began: c.Now()}
		if f.from != nil && !down && !f.from.Adopted() { // an adopted relation has no offsets to be stopped at
			if f.by, err = c.holderOf(ctx, f); err != nil {
				return err
			}
		}
		if err := agreed(ctx, f); err != nil {
			return err
		}
		if err := c.checkedForFlip(ctx, st, down); err != nil {
			return err
		}
		defer f.release(ctx)
		if err := f.stopBoth(ctx); err != nil {
			return err
		}
		return f.commit(ctx, f.promoteIn)
	})
}

// promoteIn is the transaction of a promote: first what it is conditioned on, then phases, deployments, history and the
// answer, last the view.
func (f *flip) promoteIn(ctx context.Context, tx *pg.Tx) error {
	j, err := f.begin(ctx, tx)
	if err != nil {
		return err
	}
	if err := f.conditions(ctx, tx, j); err != nil {
		return err
	}
	f.c.hit(FaultPromoteChecked)
	if f.st.Phase == job.CaughtUp { // its checks have just passed
		if err := stepVersion(ctx, tx, f.st.Ref(), job.CaughtUp, ledger.ChecksPassed); err != nil {
			return err
		}
		f.st.Phase = job.Verified
	}
	if err := f.movePhases(ctx, tx); err != nil {
		return err
	}
	earlier := ledger.WindowEnded
	if f.st.Phase == job.Standby {
		earlier = ledger.Displaced
		if !f.st.Open() { // a person promotes it by name: that is a roll-out of its own
			if f.st.ID, err = ledger.InsertFlip(ctx, tx, f.st, f.from, f.actor); err != nil {
				return err
			}
		}
	}
	if err := ledger.EndObserving(ctx, tx, f.st.Job, f.st.ID, earlier); err != nil {
		return err
	}
	if err := ledger.NotePromoted(ctx, tx, f.st, f.from, f.st.Spec.KeepOld); err != nil {
		return err
	}
	next := "kappactl status " + f.st.Job
	if f.from != nil {
		next = job.RollbackCommand(f.from.Job, f.from.Number)
	}
	f.outcome = reason.Live(f.told())
	if err := f.record(ctx, tx, ledger.EventPromoted, next); err != nil {
		return err
	}
	return f.switchView(ctx, tx, j)
}

// promotable refuses what cannot be promoted, whatever is tried.
func promotable(st *ledger.State) error {
	ref, status := st.Ref(), "kappactl status "+st.Job
	switch {
	case st.IsLive():
		return ledger.RefuseFor(job.ExitConflict, status, reason.AlreadyLive(ref))
	case ref.Adopted():
		return ledger.RefuseFor(job.ExitConflict, command("rollback", ref)+" --stale", reason.NotKeptUp(ref))
	case st.Phase == job.Staged || st.Phase == job.Replaying || st.Phase == job.Building || st.Phase == job.CatchingUp:
		return ledger.RefuseFor(job.ExitNotCaughtUp, command("wait", ref)+" --for verified",
			reason.NotCaughtUp(ref, st.Phase, st.Verdict, st.Reason))
	case st.Phase != job.CaughtUp && st.Phase != job.Verified && st.Phase != job.Standby:
		return ledger.RefuseFor(job.ExitConflict, status, reason.InPhase(ref, st.Phase))
	case st.PausedAt != nil:
		return ledger.RefuseFor(job.ExitConflict, command("resume", ref), reason.VersionPaused(ref))
	case st.Verdict == job.Unhealthy:
		return unhealthyRefusal(st, readiness.Judgement{Verdict: st.Verdict, Reason: st.Reason})
	case st.Phase == job.Standby && !st.Open():
		return nil // named by a person: it is compared with what is live now
	case !ledger.SameNumber(st.Live, st.Previous):
		return liveChanged(st, st.Live)
	}
	return nil
}

// command is how an act on a version is typed.
func command(verb string, ref job.Ref) string {
	return fmt.Sprintf("kappactl %s %s %s", verb, ref.Job, ref.Number)
}

// sampledSince holds back judgement, for a while after a promote began, on a version that catches up while its numbers
// are those of an agent that is gone.
func (c *Controller) sampledSince(ctx context.Context, st *ledger.State, began time.Time) error {
	if c.Now().Sub(began) >= c.config.FirstSample || st.Phase != job.CatchingUp || st.PausedAt != nil {
		return nil
	}
	v, err := ledger.FreshVerdict(ctx, c.Pool, st.Ref())
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
	return notReady(st.Ref(), v)
}

// liveDown reports whether the live version does not move, so that no barrier over it can be reached. Unless that was
// accepted, it is a refusal.
func (c *Controller) liveDown(ctx context.Context, st *ledger.State, args ledger.Args) (bool, error) {
	why, err := c.down(ctx, st.LiveRef())
	if err != nil || why.IsZero() {
		return false, err
	}
	if !args.LiveIsDown {
		return true, ledger.RefuseFor(job.ExitUnhealthy, command("promote", st.Ref())+" --live-is-down",
			reason.LiveIsDown(st.LiveRef().Number, why))
	}
	return true, nil
}

// down is why a version does not move; zero when it moves, and for no version.
func (c *Controller) down(ctx context.Context, live *job.Ref) (reason.Reason, error) {
	if live == nil {
		return reason.Reason{}, nil
	}
	st, err := ledger.ReadState(ctx, c.Pool, *live)
	if err != nil {
		return reason.Reason{}, err
	}
	switch {
	case st.StaleSince != nil:
		return reason.StoppedAt(*st.StaleSince, st.Reason), nil
	case st.PausedAt != nil:
		return reason.IsPaused(), nil
	case st.Verdict == job.Stalled:
		return reason.IsStalled(st.Reason), nil
	}
	return reason.Reason{}, nil
}

// coversLive refuses a candidate by whose flip readers would lose results, unless exactly that loss was accepted.
func (c *Controller) coversLive(ctx context.Context, st *ledger.State, args ledger.Args) error {
	accepted := st.Options().AcceptShorterHistory
	if args.AcceptShorterHistory != "" {
		accepted = args.AcceptShorterHistory
	}
	positions, err := c.Speed.Positions(ctx, c.Pool, st.Ref())
	if err != nil {
		return err
	}
	if err := c.tookUp(ctx, st.LiveRef(), st.Ref(), positions); err != nil {
		return err
	}
	_, err = c.survey(st).CoversLive(ctx, st, positions, accepted)
	return err
}

// tookUp is a tryAgain while live reads a new partition, from its first offset, of a topic that the candidate reads too
// and has not taken up yet.
func (c *Controller) tookUp(ctx context.Context, live *job.Ref, ref job.Ref, positions []job.Position) error {
	if live == nil || live.Adopted() {
		return nil
	}
	has, topics := map[job.Partition]bool{}, map[job.TopicID]bool{}
	for _, p := range positions {
		has[p.Partition], topics[p.TopicID] = true, true
	}
	reads, err := c.Speed.Positions(ctx, c.Pool, *live)
	if err != nil {
		return err
	}
	for _, p := range reads {
		if p.CoversFrom == 0 && topics[p.TopicID] && !has[p.Partition] {
			return &tryAgain{why: reason.NotTakenUp(ref, *live, p.Partition), notReady: true}
		}
	}
	return nil
}

// checkedForFlip refuses a candidate that the checks before the flip stop.
func (c *Controller) checkedForFlip(ctx context.Context, st *ledger.State, liveDown bool) error {
	if st.Phase != job.Verified {
		if err := c.readable(ctx, st.Version()); err != nil {
			return err
		}
	}
	bad, err := c.checkBefore(ctx, st, liveDown)
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		a := checksAnswer(st.Ref(), bad)
		return ledger.RefuseFor(a.Code, a.Next, a.Reason)
	}
	return nil
}
