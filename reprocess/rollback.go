package reprocess

import (
	"context"
	"errors"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// rollback makes readers see a version again that was live before. A try refuses what readers cannot go back to without
// losing results, stops both versions at the same offsets when both move, and flips in one transaction. Tries repeat
// until the deadline while the next one may succeed. No checks run.
func (c *Controller) rollback(ctx context.Context, a ledger.Actor, to job.Ref, args ledger.Args) error {
	tried := false
	return c.until(ctx, ledger.Rollback, to, func(ctx context.Context) error {
		st, err := ledger.ReadState(ctx, c.Pool, to)
		if err != nil {
			return err
		}
		if st.IsLive() && tried && a.Request == 0 {
			return nil // by the commit whose outcome was unknown
		}
		tried = true
		behind, err := ledger.ReadBehind(ctx, c.Pool, to)
		if err != nil {
			return err
		}
		if err := c.canGoBack(ctx, st, args, behind); err != nil {
			return err
		}
		down, err := c.down(ctx, st.LiveRef())
		if err != nil {
			return err
		}
		f := &flip{c: c, actor: a, st: st, from: st.LiveRef(), args: args, back: true, began: c.Now()}
		if down.IsZero() && !f.from.Adopted() && (!args.Stale || follows(behind, st)) {
			if f.by, err = c.holderOf(ctx, f); err != nil {
				return err
			}
		}
		defer f.release(ctx)
		if err := f.stopBoth(ctx); err != nil {
			var missed *tryAgain
			if !args.Stale || !errors.As(err, &missed) || !missed.apart {
				return err
			}
			f.release(ctx)
		}
		if args.Stale && f.by == "" {
			f.behind = behindReason(behind)
		}
		return f.commit(ctx, f.rollbackIn)
	})
}

// rollbackIn is the transaction of a rollback: first what it is conditioned on, then phases, deployments, history and
// the answer, last the view.
func (f *flip) rollbackIn(ctx context.Context, tx *pg.Tx) error {
	j, err := f.begin(ctx, tx)
	if err != nil {
		return err
	}
	if err := f.conditions(ctx, tx, j); err != nil {
		return err
	}
	f.c.hit(FaultPromoteChecked)
	if err := f.movePhases(ctx, tx); err != nil {
		return err
	}
	next := "kappactl deploy FILE --again"
	f.outcome = reason.RolledBack(f.told())
	if !f.actor.Cause.IsZero() {
		next = "kappactl status " + f.st.Job
		f.outcome = reason.RolledBackBecause(f.st.Ref(), f.actor.Cause)
	}
	if err := ledger.NoteRolledBack(ctx, tx, *f.from, f.actor, f.outcome); err != nil {
		return err
	}
	if !f.actor.Cause.IsZero() { // also in the history of the version that readers leave
		e := ledger.Entry{
			Job: f.st.Job, Number: int(f.from.Number), Deployment: f.actor.Deployment, Kind: ledger.EventReadersLeft,
			Message: f.outcome, By: f.actor.By, Role: f.actor.Role,
		}
		if err := ledger.AddEvent(ctx, tx, e); err != nil {
			return err
		}
	}
	if err := ledger.EndObserving(ctx, tx, f.st.Job, 0, ledger.WindowEnded); err != nil {
		return err
	}
	if err := f.record(ctx, tx, ledger.EventRolledBack, next); err != nil {
		return err
	}
	return f.switchView(ctx, tx, j)
}

// canGoBack refuses a version that readers cannot go back to, or not without losing newer results.
func (c *Controller) canGoBack(ctx context.Context, st *ledger.State, args ledger.Args, b ledger.Behind) error {
	ref, status := st.Ref(), "kappactl status "+st.Job
	switch {
	case st.Live == nil:
		return ledger.RefuseFor(job.ExitConflict, status, reason.NothingLive(ref.Job))
	case st.IsLive():
		return ledger.RefuseFor(job.ExitConflict, status, reason.AlreadyLive(ref))
	case st.Phase != job.Standby:
		return ledger.RefuseFor(job.ExitConflict, status, reason.NotStandby(ref, st.Phase))
	case args.Stale:
		return nil
	}
	force, behind := command("rollback", ref)+" --stale", behindReason(b)
	switch {
	case ref.Adopted():
		table := job.ViewName{Schema: st.ViewSchema, Name: ref.Table()}
		return ledger.RefuseFor(job.ExitUnhealthy, force, reason.AdoptedIsOld(ref, table))
	case st.StaleSince != nil:
		return ledger.RefuseFor(job.ExitUnhealthy, force, reason.StandbyStale(ref, *st.StaleSince, st.Reason, behind))
	case st.PausedAt != nil:
		return ledger.RefuseFor(job.ExitUnhealthy, force+", or: kappactl resume "+st.Job,
			reason.StandbyPaused(ref, *st.PausedAt, behind))
	}
	v, err := ledger.FreshVerdict(ctx, c.Pool, ref)
	if err != nil {
		return err
	}
	switch v.Verdict {
	case job.Unhealthy:
		return ledger.RefuseFor(job.ExitUnhealthy, force, reason.StandbyNotReady(ref, v.Verdict, v.Reason, reason.Reason{}))
	case job.Stalled, job.Lagging, job.NotConverging, job.BlockedByTxn:
		return ledger.RefuseFor(job.ExitNotCaughtUp, force, reason.StandbyNotReady(ref, v.Verdict, v.Reason, behind))
	case job.Unknown, job.Starting, job.ReplayingRanges, job.Holding, job.Ready:
	}
	return c.lacksNothing(ctx, st, force)
}

// lacksNothing refuses a way back to a version that skipped a gap whose records live has.
func (c *Controller) lacksNothing(ctx context.Context, st *ledger.State, force string) error {
	live := *st.LiveRef()
	gaps, err := c.survey(st).AcceptedGaps(ctx, live, st.Ref())
	if err != nil {
		return err
	}
	losses := gaps.Losses(nil)
	if len(losses) == 0 {
		return nil
	}
	return ledger.RefuseFor(job.ExitGap, force, reason.StandbyLacks(st.Ref(), live,
		readiness.Lines(losses, live, st.Ref())))
}

// behindReason is how far a version is behind, by its last samples.
func behindReason(b ledger.Behind) reason.Reason {
	switch {
	case b.Age == nil:
		return reason.NeverSampled()
	case b.Records == nil || b.Seconds == nil:
		return reason.EndUnknown()
	}
	behind := reason.Behind(*b.Records, inSeconds(*b.Seconds))
	if *b.Age > readiness.StaleAfter.Seconds() {
		return reason.BehindAsOf(behind, inSeconds(*b.Age))
	}
	return behind
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// follows reports whether a version seems to follow its topics, so that a barrier over it can be reached.
func follows(b ledger.Behind, st *ledger.State) bool {
	return b.Age != nil && *b.Age <= readiness.StaleAfter.Seconds() && st.StaleSince == nil && st.PausedAt == nil &&
		st.Verdict != job.Stalled
}
