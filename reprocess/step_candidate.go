package reprocess

import (
	"context"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// candidate watches a version that follows live before its flip: caught up or not, checked, promoted when it may.
func (w *watch) candidate(ctx context.Context, st *ledger.State) (next, error) {
	s, err := w.samples.Sample(ctx, st)
	if err != nil {
		return done, err
	}
	if n, err := w.unhealthy(ctx, st, s); n != later || err != nil {
		return n, err
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
	verdict := s.Verdict.Verdict
	if verdict == job.Starting {
		w.awaits = ledger.PartitionsTaken
	}
	switch {
	case st.Phase == job.CatchingUp && verdict == job.Ready:
		return again, w.move(ctx, st, ledger.BecameReady)
	case st.Phase != job.CatchingUp && !readiness.Within(verdict) && verdict != job.Unknown && verdict != job.Starting:
		return again, w.move(ctx, st, ledger.LagReturned)
	case verdict != job.Ready || st.PausedAt != nil || st.State.Ended():
		return later, nil
	case st.Phase == job.CaughtUp:
		return w.caughtUp(ctx, st)
	case st.Phase == job.Verified:
		return w.verified(ctx, st)
	}
	return later, nil
}

func (w *watch) move(ctx context.Context, st *ledger.State, on ledger.Event) error {
	return w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		return ledger.Move(ctx, tx, st, on)
	})
}

// caughtUp runs the checks, unless the deployment stops before them or they failed and were not asked for again.
func (w *watch) caughtUp(ctx context.Context, st *ledger.State) (next, error) {
	switch {
	case st.State == job.Waiting && (st.Until == untilCaughtUp || st.ExitCode != nil):
		return later, nil
	case st.Until == untilCaughtUp:
		return w.stop(ctx, st, ledger.Stopped, ledger.Answer{Reason: reason.CaughtUpAsAsked(), Next: "kappactl deploy FILE"})
	}
	err := w.during(ctx, st, func(ctx context.Context) error { return w.c.readable(ctx, st.Version()) })
	if a, refused := ledger.AnswerOf(err); refused {
		return w.stop(ctx, st, ledger.Stopped, a)
	}
	if err != nil {
		return done, err
	}
	if failed, n, err := w.gate(ctx, st); failed || err != nil {
		return n, err
	}
	if err := w.during(ctx, st, func(ctx context.Context) error { return w.c.warnOfNulls(ctx, st) }); err != nil {
		return done, err
	}
	if err := w.move(ctx, st, ledger.ChecksPassed); err != nil {
		return done, err
	}
	w.c.hit(FaultDeployVerified)
	return again, nil
}

// gate runs the checks before the flip. failed reports that the deployment was stopped by them, or that
// they are to be tried again; n is then what the pass asks for.
func (w *watch) gate(ctx context.Context, st *ledger.State) (failed bool, n next, err error) {
	var bad []checks.Result
	err = w.during(ctx, st, func(ctx context.Context) (err error) {
		bad, err = w.c.checkBefore(ctx, st, st.Options().LiveIsDown)
		return err
	})
	if a, refused := ledger.AnswerOf(err); refused {
		n, err = w.stop(ctx, st, ledger.Stopped, a)
		return true, n, err
	}
	if err != nil {
		n, err = w.passing(st, err)
		return true, n, err
	}
	if len(bad) > 0 {
		n, err = w.stop(ctx, st, ledger.Stopped, checksAnswer(st.Ref(), bad))
		return true, n, err
	}
	return false, later, nil
}

// passing leaves an error that can heal to the next tick.
func (w *watch) passing(st *ledger.State, err error) (next, error) {
	if pg.Unreachable(err) || !heals(err) {
		return done, err
	}
	w.c.log(st).Info("not yet", "reason", err)
	return later, nil
}

// verified promotes when the deployment may, and otherwise waits for a person.
func (w *watch) verified(ctx context.Context, st *ledger.State) (next, error) {
	auto := st.Promote == string(job.PromoteAuto) && st.Until != untilVerified && st.Until != untilStaged &&
		st.Until != untilCaughtUp
	switch {
	case st.State == job.Waiting:
		return later, nil
	case !auto:
		warning, err := ledger.LastWarning(ctx, w.c.Pool, st.ID)
		if err != nil {
			return done, err
		}
		var warnings []reason.Reason
		if !warning.IsZero() {
			warnings = append(warnings, warning)
		}
		return w.stop(ctx, st, ledger.Stopped, ledger.Answer{
			Reason: reason.Verified(st.Ref(), warnings),
			Next:   fmt.Sprintf("kappactl promote %s %s", st.Job, job.Number(st.Number)),
		})
	}
	few, err := w.fewRows(ctx, st)
	if err != nil {
		return done, err
	}
	if !few.IsZero() {
		return w.stop(ctx, st, ledger.Stopped, ledger.Answer{
			Code: job.ExitChecks, Reason: few, Next: fmt.Sprintf("kappactl promote %s %s", st.Job, job.Number(st.Number)),
		})
	}
	return w.promoteItself(ctx, st)
}

// fewRows is why a candidate that would replace most rows by nothing waits for a person; zero when it does not.
func (w *watch) fewRows(ctx context.Context, st *ledger.State) (reason.Reason, error) {
	live := st.LiveRef()
	if live == nil {
		return reason.Reason{}, nil
	}
	with, err := w.c.comparable(ctx, st, *live)
	if err != nil {
		return reason.Reason{}, err
	}
	var rows int64
	var few bool
	err = w.during(ctx, st, func(ctx context.Context) (err error) {
		rows, few, err = w.c.runner().FewRows(ctx, *with, st.Version())
		return err
	})
	if err != nil || !few {
		return reason.Reason{}, err
	}
	return reason.FewRows(st.Ref(), live.Number, rows), nil
}

// promoteItself flips on behalf of the deployment; a refusal leaves it waiting for a person.
func (w *watch) promoteItself(ctx context.Context, st *ledger.State) (next, error) {
	o := st.Options()
	err := w.during(ctx, st, func(ctx context.Context) error {
		return w.c.promote(ctx, ledger.Actor{Deployment: st.ID, Claim: st.Claim, By: st.By, Role: st.Role, While: st.State},
			st.Ref(),
			ledger.Args{
				LiveIsDown: o.LiveIsDown, IgnoreSnapshots: o.IgnoreSnapshots,
				AcceptShorterHistory: o.AcceptShorterHistory,
			})
	})
	if err == nil {
		return again, nil
	}
	a, ok := ledger.AnswerOf(err)
	switch {
	case ok:
	case ctx.Err() != nil || errors.Is(err, ledger.ErrLost) || pg.Unreachable(err):
		return done, err
	default: // it would come again at every try: a person has to look
		a = ledger.Answer{
			Code: job.ExitFailed, Reason: reason.Error(err),
			Next: fmt.Sprintf("kappactl promote %s %s", st.Job, job.Number(st.Number)),
		}
	}
	fresh, err := ledger.LoadState(ctx, w.c.Pool, w.id, w.claim)
	if err != nil {
		return done, err
	}
	if !fresh.Open() {
		return again, nil
	}
	if a.Code == job.ExitNotCaughtUp {
		return later, nil // it goes on when lag is gone
	}
	if st.FlipOnly {
		return w.stop(ctx, fresh, ledger.Failed, a)
	}
	return w.stop(ctx, fresh, ledger.Stopped, a)
}
