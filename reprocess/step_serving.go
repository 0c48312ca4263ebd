package reprocess

import (
	"context"
	"errors"
	"time"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
	"github.com/kappactl/kappactl/reprocess/sampling"
)

// retireAgainAfter is how long an automatic retire that was refused waits.
const retireAgainAfter = time.Minute

// serving watches a version that is live or standby: its timers, checks after the flip, and deployments that only flip.
func (w *watch) serving(ctx context.Context, st *ledger.State) (next, error) {
	s, err := w.samples.Sample(ctx, st)
	if err != nil {
		return done, err
	}
	if n, err := w.samples.Follow(ctx, st, s); n > 0 || err != nil {
		return again, err
	}
	if err := w.indexed(ctx, st); err != nil {
		return done, err
	}
	if err := w.expire(ctx, st); err != nil {
		return done, err
	}
	if err := w.readView(ctx, st, s); err != nil {
		return done, err
	}
	w.settled = st.State != job.RollingOut
	switch {
	case st.State == job.RollingOut:
		return w.flipOnly(ctx, st, s)
	case st.State == job.Observing && st.Phase == job.Live:
		return w.observing(ctx, st)
	case st.Phase == job.Standby && !st.Open():
		return w.standby(ctx, st)
	}
	return later, nil
}

// flipOnly does a deployment that replays nothing: of a version that is standby, or of the live one whose view changes
// in place.
func (w *watch) flipOnly(ctx context.Context, st *ledger.State, s sampling.Sample) (next, error) {
	if !st.FlipOnly {
		return later, nil
	}
	if !st.IsLive() {
		return w.standbyDeployed(ctx, st, s.Verdict.Verdict)
	}
	err := w.during(ctx, st, func(ctx context.Context) error { return w.c.apply(ctx, st) })
	a, refused := ledger.AnswerOf(err)
	switch {
	case err == nil:
		return again, nil
	case refused:
	case ctx.Err() != nil || errors.Is(err, ledger.ErrLost) || pg.Unreachable(err) || pg.Retryable(err):
		return done, err
	default: // it would come again at every try, and the rollback window waits
		a = ledger.Answer{
			Code: job.ExitFailed, Reason: reason.Error(err),
			Next: "correct the cause, then kappactl deploy FILE",
		}
	}
	return w.notApplied(ctx, st, a)
}

// standby retires itself when its window is over.
func (w *watch) standby(ctx context.Context, st *ledger.State) (next, error) {
	over := st.StandbyUntil != nil && !st.Now.Before(*st.StandbyUntil)
	now := w.c.Now()
	if !over || st.PinnedAt != nil || st.IsArm() || !st.Spec.AutoRetire || now.Sub(w.tidy) < retireAgainAfter {
		return later, nil
	}
	w.tidy = now
	err := w.c.retire(ctx, ledger.Actor{Deployment: st.ID, Claim: st.Claim, By: "kappactl", Cause: reason.WindowOver()},
		st.Ref(), ledger.Args{})
	var refusal *job.Refusal
	if errors.As(err, &refusal) {
		w.c.log(st).Warn("not retired", "reason", refusal.Cause)
		return later, nil
	}
	return again, err
}

// clean removes what a version that ended leaves behind, once no worker holds anything of it.
func (w *watch) clean(ctx context.Context, st *ledger.State) (next, error) {
	n, err := ledger.CountWorkers(ctx, w.c.Pool, st)
	if err != nil {
		return done, err
	}
	if n > 0 {
		return later, nil
	}
	kept := ""
	if st.KeepTable {
		kept = job.ViewName{Schema: st.Schema(), Name: st.Ref().Table()}.String()
	} else if err := w.c.Serving.Drop(ctx, w.c.Pool, st.Version()); err != nil {
		if pg.Unreachable(err) || ctx.Err() != nil {
			return done, err
		}
		if why := reason.NotDropped(err); !why.Equal(st.Reason) {
			w.c.log(st).Warn(why.Text())
			return later, ledger.SetVerdict(ctx, w.c.Pool, st, readiness.Judgement{Verdict: job.Stalled, Reason: why}, false)
		}
		return later, nil
	}
	w.c.hit(FaultRetireDropped)
	limited, cancel := context.WithTimeout(ctx, w.c.config.AskTimeout)
	defer cancel()
	of, err := pg.Identity(ctx, w.c.Pool)
	if err != nil {
		return done, err
	}
	if err := w.c.Brokers.DeleteGroup(limited, st.Ref().Group(of)); err != nil {
		// It only carries advisory offsets, which expire by themselves.
		w.c.log(st).Warn("consumer group not deleted", "group", st.Ref().Group(of), "reason", err)
	}
	err = w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := ledger.Fence(ctx, tx, st); err != nil {
			return err
		}
		if err := w.work.Remove(ctx, tx, st.Version()); err != nil {
			return err
		}
		if err := generation.EndVersion(ctx, tx, st.Ref()); err != nil {
			return err
		}
		if err := ledger.EndVersion(ctx, tx, st); err != nil {
			return err
		}
		return ledger.AddEvent(ctx, tx, st.Entry(ledger.EventCleaned, reason.Cleaned(kept)))
	})
	if err != nil {
		return done, err
	}
	w.c.log(st).Info("cleaned up", "phase", st.Phase)
	return done, nil
}
