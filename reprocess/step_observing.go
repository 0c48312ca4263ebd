package reprocess

import (
	"context"
	"errors"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// observing ends the rollback window; until then it runs the checks after the flip, and rolls back when one fails twice
// in a row.
func (w *watch) observing(ctx context.Context, st *ledger.State) (next, error) {
	after := checks.In(st.Spec.Checks, job.CheckAfter)
	var past []checks.Past
	if len(after) > 0 {
		var err error
		if past, err = checks.Read(ctx, w.c.Pool, st.ID, job.CheckAfter); err != nil {
			return done, err
		}
	}
	// By what is written, not by what this process saw: whoever comes after an agent that died goes on.
	bad := checks.FailedTwice(after, past)
	if st.ObserveUntil == nil || !st.Now.Before(*st.ObserveUntil) {
		return w.settle(ctx, st, bad)
	}
	if bad == nil && !st.Message.IsZero() && st.ExitCode == nil {
		failed, err := ledger.ReadRollbackFailure(ctx, w.c.Pool, st.ID)
		if err != nil {
			return done, err
		}
		if failed == nil || checks.Recovered(failed.Check, after, past) {
			return again, w.nothingToGoBackFrom(ctx, st)
		}
	}
	if bad != nil && w.c.Now().Sub(w.back.tried) >= w.back.pause {
		return w.flipBack(ctx, st, *bad)
	}
	due := checks.Due(after, past, st.Now, w.c.config.Tick)
	if len(due) == 0 {
		return later, nil
	}
	return w.runAfter(ctx, st, due, past)
}

// settle ends the rollback window. There is nothing left to roll back: the deployment ends with a check that fails.
func (w *watch) settle(ctx context.Context, st *ledger.State, bad *checks.Past) (next, error) {
	why := reason.WindowOver()
	var a ledger.Answer
	if bad != nil {
		failed, err := ledger.ReadRollbackFailure(ctx, w.c.Pool, st.ID)
		if err != nil {
			return done, err
		}
		if failed == nil {
			failed = &ledger.RollbackFailure{}
		}
		why = reason.WindowOverFailing(st.Ref(), bad.Name, bad.Detail, failed.To, failed.Cause)
		a = ledger.Answer{Code: job.ExitChecks, Reason: why, Next: "correct the cause, then kappactl deploy FILE"}
	}
	err := w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := ledger.MoveDeployment(ctx, tx, st, ledger.WindowEnded, a); err != nil {
			return err
		}
		return ledger.AddEvent(ctx, tx, st.Entry(ledger.EventSettled, why))
	})
	return again, err
}

// nothingToGoBackFrom clears the message of a failed automatic rollback: the check that asked for it passes again, or
// is no longer in the job file.
func (w *watch) nothingToGoBackFrom(ctx context.Context, st *ledger.State) error {
	w.back = backing{}
	return w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := ledger.SetMessage(ctx, tx, st, reason.Reason{}, ""); err != nil {
			return err
		}
		return ledger.AddEvent(ctx, tx, st.Entry(ledger.EventNoRollbackNeeded, reason.Recovered(job.Number(st.Number))))
	})
}

// runAfter runs checks and notes what they said; who reads it next acts on it.
func (w *watch) runAfter(ctx context.Context, st *ledger.State, due []job.Check, past []checks.Past) (next, error) {
	var r *checks.Run
	err := w.during(ctx, st, func(ctx context.Context) (err error) {
		r, err = w.c.checkAfter(ctx, st, due)
		return err
	})
	if err != nil {
		return w.passing(st, err)
	}
	err = w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := ledger.Fence(ctx, tx, st); err != nil {
			return err
		}
		if err := r.Write(ctx, tx, st); err != nil {
			return err
		}
		return w.noteChanges(ctx, tx, st, r, past)
	})
	if err != nil {
		return done, err
	}
	w.c.hit(FaultCheckNoted)
	return again, nil
}

// noteChanges writes history for the checks whose answer differs from the time before.
func (w *watch) noteChanges(ctx context.Context, tx *pg.Tx, st *ledger.State, r *checks.Run, past []checks.Past) error {
	for _, result := range r.Results {
		log := w.c.log(st).With("check", result.Name, "outcome", string(result.Outcome), "reason", result.Detail.Text())
		switch result.Outcome {
		case checks.Fail:
			log.Error("a check fails after the flip")
		case checks.NoAnswer:
			log.Warn("a check gives no answer after the flip")
		case checks.Pass:
		}
	}
	for _, result := range checks.ChangedResults(r.Results, past) {
		kind := map[checks.Outcome]ledger.EventKind{
			checks.Pass: ledger.EventCheckPassed, checks.Fail: ledger.EventCheckFailed,
			checks.NoAnswer: ledger.EventCheckNoAnswer,
		}[result.Outcome]
		e := st.Entry(kind, reason.CheckAfterFlip(result.Answer()))
		e.Detail = map[string]any{"checks": []checks.Result{result}, "positions": r.Offsets}
		if err := ledger.AddEvent(ctx, tx, e); err != nil {
			return err
		}
	}
	return nil
}

// backing is the result of the attempts to flip back.
type backing struct {
	tried time.Time
	pause time.Duration
}

// flipBack rolls back by itself: by the barrier and the transaction of a rollback that a person asks for.
func (w *watch) flipBack(ctx context.Context, st *ledger.State, bad checks.Past) (next, error) {
	if st.Previous == nil {
		return later, nil
	}
	to := job.Ref{Job: job.Name(st.Job), Number: job.Number(*st.Previous)}
	because := reason.FailedTwice(bad.Name, bad.Detail)
	err := w.during(ctx, st, func(ctx context.Context) error {
		// Its tries take a while: once readers have left this version, it is not for its check to move them.
		by := ledger.Actor{Deployment: st.ID, Claim: st.Claim, By: "kappactl", Cause: because, While: job.Observing}
		return w.c.rollback(ctx, by, to, ledger.Args{})
	})
	a, refused := ledger.AnswerOf(err)
	switch {
	case err == nil:
		return again, nil
	case refused:
	case ctx.Err() != nil || errors.Is(err, ledger.ErrLost) || pg.Unreachable(err):
		return done, err
	default: // it would come again at every try: a person has to look
		a = ledger.Answer{Code: job.ExitFailed, Reason: reason.Error(err), Next: st.RollbackCommand()}
	}
	// The check goes on in between: when it passes again, nothing is left to undo.
	w.back.tried, w.back.pause = w.c.Now(), w.c.config.Tick*10
	return later, w.cannotFlipBack(ctx, st, ledger.RollbackFailure{
		Check: bad.Name, To: to.Number.String(),
		Cause: a.Reason,
	}, because, a.Next)
}

// cannotFlipBack notes a failed automatic rollback on the deployment and in its history, once for each check and cause.
func (w *watch) cannotFlipBack(
	ctx context.Context, st *ledger.State, f ledger.RollbackFailure, because reason.Reason, next string,
) error {
	w.c.log(st).Error("automatic rollback failed", "because", because.Text(), "reason", f.Cause.Text())
	noted, err := ledger.ReadRollbackFailure(ctx, w.c.Pool, st.ID)
	if err != nil {
		return err
	}
	if noted != nil && noted.Check == f.Check && noted.Cause.Key() == f.Cause.Key() {
		return nil
	}
	message := reason.CannotRollBack(because, f.To, f.Cause)
	e := st.Entry(ledger.EventNotRolledBack, message)
	e.Detail = f
	return w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := ledger.SetMessage(ctx, tx, st, message, next); err != nil {
			return err
		}
		return ledger.AddEvent(ctx, tx, e)
	})
}
