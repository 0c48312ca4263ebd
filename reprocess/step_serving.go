package reprocess

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// retireAgainAfter is how long an automatic retire that was refused waits.
const retireAgainAfter = time.Minute

// serving watches a version that is live or standby: its timers, checks after the flip, and deployments that only flip.
func (w *watch) serving(ctx context.Context, st *state) (next, error) {
	s, err := w.sample(ctx, st)
	if err != nil {
		return done, err
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
	switch {
	case st.State == job.RollingOut:
		return w.flipOnly(ctx, st)
	case st.State == job.Observing && st.Phase == job.Live:
		return w.observing(ctx, st)
	case st.Phase == job.Standby:
		return w.standby(ctx, st)
	}
	return later, nil
}

// flipOnly does a deployment of a version that is standby, or writes the live version's view anew.
func (w *watch) flipOnly(ctx context.Context, st *state) (next, error) {
	if !st.FlipOnly {
		return later, nil
	}
	if !st.isLive() {
		return w.promoteItself(ctx, st)
	}
	err := w.during(ctx, st, func(ctx context.Context) error { return w.c.apply(ctx, st) })
	a, refused := answerOf(err)
	switch {
	case err == nil:
		return again, nil
	case refused:
	case ctx.Err() != nil || errors.Is(err, errLost) || pg.Unreachable(err) || pg.Retryable(err):
		return done, err
	default: // it would come again at every try, and the rollback window waits
		a = Answer{Code: job.ExitFailed, Text: err.Error(), Next: "correct the cause, then kappactl deploy FILE"}
	}
	return w.notApplied(ctx, st, a)
}

// standby retires itself when its window is over.
func (w *watch) standby(ctx context.Context, st *state) (next, error) {
	over := st.StandbyUntil != nil && !st.Now.Before(*st.StandbyUntil)
	now := w.c.Now()
	if !over || st.PinnedAt != nil || !st.spec.AutoRetire || now.Sub(w.tidy) < retireAgainAfter {
		return later, nil
	}
	w.tidy = now
	err := w.c.retire(ctx, actor{deployment: st.ID, claim: st.claim, by: "kappactl", reason: "the rollback window is over"}, st.ref(), Args{})
	var refusal *job.Refusal
	if errors.As(err, &refusal) {
		w.c.log(st).Warn("not retired", "reason", refusal.Cause)
		return later, nil
	}
	return again, err
}

// notDropped is how the reason of a version begins whose table cannot be dropped yet.
const notDropped = "the table is not dropped yet"

// clean removes what a version that ended leaves behind, once no worker holds anything of it.
func (w *watch) clean(ctx context.Context, st *state) (next, error) {
	n, err := working(ctx, w.c.Pool, st)
	if err != nil {
		return done, err
	}
	if n > 0 {
		return later, nil
	}
	gone := "table, positions and consumer group are gone"
	if st.KeepTable {
		gone = fmt.Sprintf("positions and consumer group are gone; table %s stays", job.ViewName{Schema: st.schema(), Name: st.ref().Table()})
	} else if err := w.c.Tables.Drop(ctx, w.c.Pool, st.ref(), st.schema()); err != nil {
		if pg.Unreachable(err) || ctx.Err() != nil {
			return done, err
		}
		if text := fmt.Sprintf("%s: %v", notDropped, err); text != st.Reason {
			w.c.log(st).Warn(text)
			return later, setVerdict(ctx, w.c.Pool, st, Judged{job.Stalled, text}, false)
		}
		return later, nil
	}
	w.c.hit(FaultRetireDropped)
	limited, cancel := context.WithTimeout(ctx, w.c.config.AskTimeout)
	defer cancel()
	if err := w.c.Topics.DeleteGroup(limited, st.ref().Group()); err != nil {
		// It only carries advisory offsets, which expire by themselves.
		w.c.log(st).Warn("consumer group not deleted", "group", st.ref().Group(), "reason", err)
	}
	err = w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := fence(ctx, tx, st); err != nil {
			return err
		}
		if err := w.c.Replays.Remove(ctx, tx, st.ref(), st.schema()); err != nil {
			return err
		}
		if err := endVersion(ctx, tx, st); err != nil {
			return err
		}
		return addEvent(ctx, tx, st.entry("cleaned", "%s", gone))
	})
	if err != nil {
		return done, err
	}
	w.c.log(st).Info("cleaned up", "phase", st.Phase)
	return done, nil
}
