package reprocess

import (
	"context"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// candidate watches a version that follows live before its flip: caught up or not, checked, promoted when it may.
func (w *watch) candidate(ctx context.Context, st *state) (next, error) {
	s, err := w.sample(ctx, st)
	if err != nil {
		return done, err
	}
	if n, err := w.unhealthy(ctx, st, s); n != later || err != nil {
		return n, err
	}
	if n, err := w.follow(ctx, st, s); n > 0 || err != nil {
		return again, err
	}
	if err := w.indexed(ctx, st); err != nil {
		return done, err
	}
	if err := w.expire(ctx, st); err != nil {
		return done, err
	}
	verdict := s.verdict.Verdict
	if verdict == job.Starting {
		w.awaits = partitionsTaken
	}
	switch {
	case st.Phase == job.CatchingUp && verdict == job.Ready:
		return again, w.move(ctx, st, BecameReady)
	case st.Phase != job.CatchingUp && !within(verdict) && verdict != job.Unknown && verdict != job.Starting:
		return again, w.move(ctx, st, LagReturned)
	case verdict != job.Ready || st.PausedAt != nil || st.State.Ended():
		return later, nil
	case st.Phase == job.CaughtUp:
		return w.caughtUp(ctx, st)
	case st.Phase == job.Verified:
		return w.verified(ctx, st)
	}
	return later, nil
}

func (w *watch) move(ctx context.Context, st *state, on Event) error {
	return w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		return move(ctx, tx, st, on)
	})
}

// caughtUp runs the checks, unless the deployment stops before them or they failed and nobody asked again.
func (w *watch) caughtUp(ctx context.Context, st *state) (next, error) {
	switch {
	case st.State == job.Waiting && (st.Until == untilCaughtUp || st.ExitCode != nil):
		return later, nil
	case st.Until == untilCaughtUp:
		return w.say(ctx, st, job.Waiting, Answer{Text: "caught up, as asked for", Next: "kappactl deploy FILE"})
	}
	var bad []CheckResult
	err := w.during(ctx, st, func(ctx context.Context) (err error) {
		bad, err = w.c.checkBefore(ctx, st, st.options().LiveIsDown)
		return err
	})
	if err != nil {
		return w.passing(st, err)
	}
	if len(bad) > 0 {
		return w.say(ctx, st, job.Waiting, checksAnswer(st.ref(), bad))
	}
	if err := w.during(ctx, st, func(ctx context.Context) error { return w.c.warnOfNulls(ctx, st) }); err != nil {
		return done, err
	}
	if err := w.move(ctx, st, ChecksPassed); err != nil {
		return done, err
	}
	w.c.hit(FaultDeployVerified)
	return again, nil
}

// passing leaves an error that can heal to the next tick.
func (w *watch) passing(st *state, err error) (next, error) {
	if pg.Unreachable(err) || !heals(err) {
		return done, err
	}
	w.c.log(st).Info("not yet", "reason", err)
	return later, nil
}

// verified promotes when the deployment may, and otherwise waits for a person.
func (w *watch) verified(ctx context.Context, st *state) (next, error) {
	auto := st.Promote == string(job.PromoteAuto) && st.Until != untilVerified && st.Until != untilStaged && st.Until != untilCaughtUp
	switch {
	case st.State == job.Waiting:
		return later, nil
	case !auto:
		warning, err := lastWarning(ctx, w.c.Pool, st)
		if err != nil {
			return done, err
		}
		return w.say(ctx, st, job.Waiting, Answer{
			Text: fmt.Sprintf("%s is verified and waits to be promoted%s", st.ref(), warning),
			Next: fmt.Sprintf("kappactl promote %s %s", st.Job, job.Number(st.Number)),
		})
	}
	return w.promoteItself(ctx, st)
}

// promoteItself flips on behalf of the deployment; a refusal leaves it waiting for a person.
func (w *watch) promoteItself(ctx context.Context, st *state) (next, error) {
	o := st.options()
	err := w.during(ctx, st, func(ctx context.Context) error {
		_, err := w.c.promote(ctx, actor{deployment: st.ID, claim: st.claim, by: st.By, while: st.State}, st.ref(),
			Args{LiveIsDown: o.LiveIsDown, IgnoreSnapshots: o.IgnoreSnapshots, AcceptShorterHistory: o.AcceptShorterHistory})
		return err
	})
	if err == nil {
		return again, nil
	}
	a, ok := answerOf(err)
	switch {
	case ok:
	case ctx.Err() != nil || errors.Is(err, errLost) || pg.Unreachable(err):
		return done, err
	default: // it would come again at every try: a person has to look
		a = Answer{Code: job.ExitFailed, Text: err.Error(), Next: fmt.Sprintf("kappactl promote %s %s", st.Job, job.Number(st.Number))}
	}
	fresh, err := loadState(ctx, w.c.Pool, w.id, w.claim)
	if err != nil {
		return done, err
	}
	if !fresh.open() {
		return again, nil
	}
	if a.Code == job.ExitNotCaughtUp {
		return later, nil // it goes on when lag is gone
	}
	if st.FlipOnly {
		return w.say(ctx, fresh, job.DeployFailed, a)
	}
	return w.say(ctx, fresh, job.Waiting, a)
}
