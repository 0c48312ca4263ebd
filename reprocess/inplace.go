package reprocess

import (
	"context"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// apply puts the deployment's pending change in force on the live version: indexes first, then spec, history and view
// in one transaction that queues before readers no longer than a flip does. The view is the last statement.
func (c *Controller) apply(ctx context.Context, st *ledger.State) error {
	a := ledger.Actor{Deployment: st.ID, Claim: st.Claim, By: st.By, Role: st.Role}
	wished, w, err := st.Pending()
	if err != nil {
		return err
	}
	if err := c.readable(ctx, wished.Version()); err != nil {
		return err
	}
	if err := c.Serving.Index(ctx, c.Pool, wished.Version()); err != nil {
		return err
	}
	return c.until(ctx, ledger.Promote, st.Ref(), func(ctx context.Context) error {
		err := c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
			j, err := a.Begin(ctx, tx, job.Name(st.Job))
			if err != nil {
				return err
			}
			if !sameNumber(j.Live, new(st.Ref())) {
				return liveChanged(st, j.Live)
			}
			if err := ledger.NoExperiment(ctx, tx, st.Ref().Job); err != nil {
				return err
			}
			if err := ledger.SameOptions(ctx, tx, st); err != nil {
				return err
			}
			if err := ledger.InheritWindow(ctx, tx, st); err != nil {
				return err
			}
			if err := w.Write(ctx, tx, st.Ref()); err != nil {
				return err
			}
			e := st.Entry(ledger.EventApplied, reason.Applied(w.Changed))
			e.By, e.Role, e.Detail = st.By, st.Role, w.Changed
			if err := ledger.AddEvent(ctx, tx, e); err != nil {
				return err
			}
			if wished, _, err = st.WithSpec(w); err != nil {
				return err
			}
			return c.switchView(ctx, tx, wished, j)
		})
		if pg.Retryable(err) {
			holders, e := ledger.LockHolders(ctx, c.Pool, st.View())
			return errors.Join(e, &tryAgain{why: reason.LockNotGranted("view", st.View(), c.config.LockTimeout,
				ledger.BlockerTexts(holders)), err: err})
		}
		return err
	})
}

// notApplied ends a deployment whose change was refused: the view stays as it is, and the rollback window goes on.
func (w *watch) notApplied(ctx context.Context, st *ledger.State, a ledger.Answer) (next, error) {
	err := w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := ledger.Fence(ctx, tx, st); err != nil {
			return err
		}
		if err := ledger.InheritWindow(ctx, tx, st); err != nil {
			return err
		}
		if err := ledger.NoteRefused(ctx, tx, st.ID, a); err != nil {
			return err
		}
		return ledger.AddEvent(ctx, tx, st.Entry(ledger.EventWaiting, a.Reason))
	})
	if err != nil {
		return done, err
	}
	w.c.log(st).Info("not applied", "exit_code", int(a.Code), "reason", a.Text())
	return again, nil
}

// indexed makes the version's indexes be those of its layout: once, and when they were changed in place.
func (w *watch) indexed(ctx context.Context, st *ledger.State) error {
	want := fmt.Sprint("made for ", st.Layout.Indexes)
	if w.indexes == want {
		return nil
	}
	err := w.during(ctx, st, func(ctx context.Context) error {
		return w.c.Serving.Index(ctx, w.c.Pool, st.Version())
	})
	w.samples.Unindexed = reason.Reason{}
	if a, refused := ledger.Hopeless(err); refused {
		w.c.log(st).Warn("indexes are not created", "reason", a.Text())
		w.samples.Unindexed, err = reason.IndexFails(a.Text()), nil
	}
	if err == nil {
		w.indexes = want
	}
	return err
}
