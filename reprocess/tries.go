package reprocess

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// until repeats try, with jitter, while it may still succeed and the deadline is not over.
func (c *Controller) until(ctx context.Context, verb ledger.Verb, ref job.Ref, try func(context.Context) error) error {
	began := c.Now()
	for {
		err := try(ctx)
		if err == nil || !heals(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if c.Now().Sub(began) >= c.config.PromoteDeadline {
			return c.gaveUp(verb, ref, err)
		}
		every := c.config.RetryEvery
		if retry.Sleep(ctx, every+time.Duration(c.rand.int64n(int64(every/2)))) != nil {
			return ctx.Err()
		}
	}
}

// overRows repeats a transaction on rows of a job that others lock or move at the same moment, as agents do when they
// renew leases. A dry run rolls it back at its end.
func (c *Controller) overRows(ctx context.Context, verb ledger.Verb, ref job.Ref, args ledger.Args,
	act func(*pg.Tx) error,
) error {
	return c.until(ctx, verb, ref, func(ctx context.Context) error {
		err := c.Pool.Try(ctx, args.DryRun, act)
		if pg.Retryable(err) {
			err = &tryAgain{why: reason.RowsInUse(), err: err}
		}
		return err
	})
}

// gaveUp lists what the tries were stopped by.
func (c *Controller) gaveUp(verb ledger.Verb, ref job.Ref, err error) error {
	var t *tryAgain
	if !errors.As(err, &t) {
		return err
	}
	code := job.ExitTimeout
	if t.notReady {
		code = job.ExitNotCaughtUp
	}
	next, what := fmt.Sprintf("kappactl %s %s %s", verb, ref.Job, ref.Number), ref.String()
	if verb.OfJob() {
		next, what = fmt.Sprintf("kappactl %s %s", verb, ref.Job), string(ref.Job)
		if t.next != "" {
			next = t.next
		}
	}
	return ledger.RefuseFor(code, next, reason.GaveUp(string(verb), what, c.config.PromoteDeadline, t.why))
}

// lockTrouble turns what another try may heal into a tryAgain: a commit in doubt, or readers that hold the view
// (or what kind of relation it is).
func (c *Controller) lockTrouble(ctx context.Context, kind string, view job.ViewName, err error) error {
	var unsure *pg.CommitError
	switch {
	case ctx.Err() != nil:
		return err
	case errors.As(err, &unsure):
		return &tryAgain{why: reason.CommitUnknown(), err: err}
	case pg.Retryable(err):
		holders, e := ledger.LockHolders(ctx, c.Pool, view)
		if e != nil {
			return e
		}
		return &tryAgain{why: reason.LockNotGranted(kind, view, c.config.LockTimeout, ledger.BlockerTexts(holders)), err: err}
	}
	return err
}
