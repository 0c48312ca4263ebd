package reprocess

import (
	"context"
	"slices"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// drop ends a job: in one transaction the view goes and every version begins to end; their controllers clean up; then
// the job is forgotten. Each part can be repeated by another agent.
func (c *Controller) drop(ctx context.Context, a ledger.Actor, name job.Name, args ledger.Args) error {
	err := c.until(ctx, ledger.Drop, job.Ref{Job: name}, func(ctx context.Context) error {
		return c.markDropped(ctx, a, name, args.KeepView)
	})
	if err != nil {
		return err
	}
	c.hit(FaultDropMarked)
	if err := c.awaitDropped(ctx, name); err != nil {
		return err
	}
	c.hit(FaultDropCleaned)
	return c.overRows(ctx, ledger.Drop, job.Ref{Job: name}, ledger.Args{},
		func(tx *pg.Tx) error { return c.forget(ctx, tx, a, name) })
}

func (c *Controller) markDropped(ctx context.Context, a ledger.Actor, name job.Name, keepView bool) error {
	var view job.ViewName
	err := c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		j, err := a.Begin(ctx, tx, name)
		view = j.View()
		if err != nil || j.DroppingAt != nil {
			return err
		}
		removal, err := plan.Removing(ctx, tx, j, keepView, c.Serving)
		if err != nil {
			return err
		}
		if err := endVersions(ctx, tx, j, keepView); err != nil {
			return err
		}
		if err := ledger.AddEvent(ctx, tx, ledger.Entry{
			Job: j.Name, Whole: true, Kind: ledger.EventDrop,
			Message: reason.DropBegins(removal.Lines()), Detail: removal, By: a.By, Role: a.Role,
		}); err != nil {
			return err
		}
		// The view last: readers wait for what follows its lock.
		if err := c.beforeReaders(ctx, tx); err != nil {
			return err
		}
		switch {
		case keepView:
			return c.Serving.LeaveView(ctx, tx, view, job.Ref{Job: name, Number: job.Number(*j.Live)})
		case !removal.DropsView:
			return nil
		}
		if err := c.Serving.DropView(ctx, tx, view, name); err != nil || !removal.GivesBack {
			return err
		}
		return c.Serving.GiveBack(ctx, tx, view, job.Ref{Job: name})
	})
	if err != nil {
		return c.lockTrouble(ctx, "view", view, err)
	}
	return nil
}

// endVersions sends every version of the job to its end and closes its deployments.
func endVersions(ctx context.Context, tx *pg.Tx, j ledger.JobRow, keepView bool) error {
	rows, err := ledger.LockDropped(ctx, tx, job.Name(j.Name))
	if err != nil {
		return err
	}
	for _, v := range rows {
		if _, moves := ledger.Next(v.Phase, ledger.DropAsked); !moves {
			continue // it is on its way out already
		}
		if err := stepVersion(ctx, tx, job.Ref{Job: job.Name(j.Name), Number: job.Number(v.Number)}, v.Phase,
			ledger.DropAsked); err != nil {
			return err
		}
	}
	return ledger.MarkDropping(ctx, tx, j, keepView)
}

// awaitDropped waits until nothing of any version is left, and says what is in the way when it stays there.
func (c *Controller) awaitDropped(ctx context.Context, name job.Name) error {
	began := c.Now()
	for {
		rows, err := ledger.ReadDropped(ctx, c.Pool, name)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return nil
		}
		stuck := slices.IndexFunc(rows, func(v ledger.DroppedRow) bool {
			return v.Verdict == job.Stalled && v.Reason.Is(reason.CodeNotDropped)
		})
		if stuck >= 0 && c.Now().Sub(began) >= c.config.DropPatience {
			return ledger.RefuseFor(job.ExitConflict, "end what is in the way, then: kappactl drop "+string(name),
				reason.DropStuck(job.Ref{Job: name, Number: job.Number(rows[stuck].Number)}, rows[stuck].Reason))
		}
		if retry.Sleep(ctx, c.config.Tick/4) != nil {
			return ctx.Err()
		}
	}
}

// forget removes the job's rows and answers.
func (c *Controller) forget(ctx context.Context, tx *pg.Tx, a ledger.Actor, name job.Name) error {
	j, err := a.Begin(ctx, tx, name)
	if err != nil {
		return err
	}
	kept, err := ledger.ForgetJob(ctx, tx, j, a.By)
	if err != nil {
		return err
	}
	dropped := reason.JobDropped(name, kept)
	if err := ledger.AddEvent(ctx, tx, ledger.Entry{
		Job: j.Name, Whole: true, Kind: ledger.EventDropped, Message: dropped,
		By: a.By, Role: a.Role,
	}); err != nil {
		return err
	}
	return a.Answer(ctx, tx, dropped, "kappactl history "+string(name))
}
