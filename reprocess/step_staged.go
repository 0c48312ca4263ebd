package reprocess

import (
	"context"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// untilStaged and untilCaughtUp are where a deployment may be asked to stop before its checks.
const (
	untilStaged   = "staged"
	untilCaughtUp = "caught_up"
	untilVerified = "verified"
)

// staged decides where the replay begins, refuses to lose results, makes the table and freezes the ranges.
func (w *watch) staged(ctx context.Context, st *ledger.State) (next, error) {
	if st.PausedAt != nil || (st.State == job.Waiting && st.Until == untilStaged) {
		return later, nil
	}
	o, err := w.outset(ctx, st)
	a, refused := ledger.AnswerOf(err)
	switch {
	case ctx.Err() != nil:
		return done, ctx.Err()
	case refused:
		return w.fail(ctx, st, a)
	case pg.Unreachable(err):
		return done, err
	case err != nil:
		// The brokers do not answer, or the topic is not there yet: both can heal.
		return later, ledger.SetVerdict(ctx, w.c.Pool, st,
			readiness.Judgement{Verdict: job.Unknown, Reason: reason.Error(err)}, false)
	}
	if err := w.c.Serving.Create(ctx, w.c.Pool, st.Version()); err != nil {
		if a, refused = ledger.AnswerOf(err); refused {
			return w.fail(ctx, st, a)
		}
		return done, err
	}
	if w.work.Keyed(&st.Spec) {
		if err := w.c.Serving.Index(ctx, w.c.Pool, st.Version()); err != nil {
			return done, err
		}
	}
	w.c.hit(FaultDeployCreated)
	if st.Until == untilStaged && st.State == job.RollingOut {
		return w.stop(ctx, st, ledger.Stopped, ledger.Answer{Reason: reason.StagedAsAsked(), Next: "kappactl deploy FILE"})
	}
	err = w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := w.work.Freeze(ctx, tx, st.Version(), o.Frozen); err != nil {
			return err
		}
		if err := ledger.AcceptLoss(ctx, tx, st, o.Accepted); err != nil {
			return err
		}
		if err := ledger.AddWarning(ctx, tx, st, o.Warning); err != nil {
			return err
		}
		return ledger.Move(ctx, tx, st, ledger.Frozen)
	})
	if a, refused = ledger.AnswerOf(err); refused {
		return w.fail(ctx, st, a)
	}
	if err != nil {
		return done, err
	}
	w.c.hit(FaultDeployFrozen)
	w.c.log(st).Info("replay begins", "partitions", len(o.Frozen), "offsets", offsets(o.Frozen))
	return again, nil
}

func offsets(frozen []job.Frozen) (n int64) {
	for _, f := range frozen {
		n += f.Len()
	}
	return n
}

// outset is how the replay begins, after everything that can be refused was.
func (w *watch) outset(ctx context.Context, st *ledger.State) (plan.Outset, error) {
	if err := plan.ViewFits(ctx, w.c.Pool, w.c.Serving, st.JobRow(), st.Layout,
		st.Options().AllowColumnChange); err != nil {
		return plan.Outset{}, err
	}
	limited, cancel := context.WithTimeout(ctx, plan.Patience(&st.Spec, w.c.config.AskTimeout))
	defer cancel()
	return w.c.survey(st).Outset(limited, st)
}

// survey asks about the histories of two versions.
func (c *Controller) survey(st *ledger.State) plan.Survey {
	return plan.Survey{
		DB: c.Pool, Brokers: c.History.Reading(&st.Spec, c.Brokers), Positions: c.Speed,
		Serving: c.Serving, Now: c.Now(),
	}
}
