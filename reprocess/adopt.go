package reprocess

import (
	"context"
	"errors"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// adopt makes an existing relation version 0 of a new job, in one transaction that queues before readers for no longer
// than LockTimeout; tries repeat until the deadline.
func (c *Controller) adopt(ctx context.Context, a ledger.Actor, name job.Name, args ledger.Args) error {
	return c.until(ctx, ledger.Adopt, job.Ref{Job: name}, func(ctx context.Context) error {
		err := c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error { return c.adoptIn(ctx, tx, a, name, args) })
		if err != nil && args.View != nil {
			err = c.lockTrouble(ctx, "relation", *args.View, err)
		}
		var t *tryAgain
		if errors.As(err, &t) {
			t.next = job.AdoptCommand(name, *args.View)
		}
		return err
	})
}

func (c *Controller) adoptIn(ctx context.Context, tx *pg.Tx, a ledger.Actor, name job.Name, args ledger.Args) error {
	if err := ledger.LockTimeout(ctx, tx, ledger.SlowLock); err != nil {
		return err
	}
	if err := a.Fence(ctx, tx); err != nil {
		return err
	}
	adoption, err := plan.Adopting(ctx, tx, name, args, c.Serving)
	if err != nil {
		return err
	}
	id, err := ledger.InsertAdopted(ctx, tx, adoption, a)
	if err != nil {
		return err
	}
	adopted := reason.RelationAdopted(adoption)
	e := ledger.Entry{Job: string(name), Deployment: id, Kind: ledger.EventAdopt, Message: adopted, By: a.By, Role: a.Role}
	if err := ledger.AddEvent(ctx, tx, e); err != nil {
		return err
	}
	if err := a.Answer(ctx, tx, adopted, "kappactl plan FILE, then kappactl deploy FILE"); err != nil {
		return err
	}
	if err := c.beforeReaders(ctx, tx); err != nil {
		return err
	}
	contract, err := c.Serving.Adopt(ctx, tx, adoption)
	if err != nil {
		return err
	}
	return ledger.SetLive(ctx, tx, adoption.To, contract)
}

// adopted handles a version without work: only the end of its rollback window is awaited.
func (w *watch) adopted(ctx context.Context, st *ledger.State) (next, error) {
	if st.Phase == job.Standby {
		return w.standby(ctx, st)
	}
	return later, nil
}
