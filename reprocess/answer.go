package reprocess

import (
	"context"
	"errors"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Answer does what a request asks for and answers it, as ledger.Perform describes.
func (c *Controller) Answer(ctx context.Context, request, claim int64) error {
	return ledger.Perform(ctx, c.Pool, c.Log, request, claim,
		func(ctx context.Context, a ledger.Actor, verb ledger.Verb, ref job.Ref, args ledger.Args) error {
			err := c.act(ctx, a, verb, ref, args)
			c.hit(FaultPromoteAnswered)
			return c.final(ctx, a, err)
		})
}

// act does one verb. The flips, pause and resume answer in their own transaction.
func (c *Controller) act(ctx context.Context, a ledger.Actor, verb ledger.Verb, ref job.Ref, args ledger.Args) error {
	var err error
	switch verb {
	case ledger.Promote:
		err = c.promote(ctx, a, ref, args)
	case ledger.Rollback:
		err = c.rollback(ctx, a, ref, args)
	case ledger.Pause:
		err = c.pause(ctx, a, ref, args)
	case ledger.Resume:
		err = c.resume(ctx, a, ref, args)
	case ledger.Abort:
		if err = c.abort(ctx, a, ref, args); err == nil {
			err = c.awaitEnd(ctx, a, ref, reason.Aborted(ref))
		}
	case ledger.Retire:
		err = c.retireAndWait(ctx, a, ref, args)
	case ledger.Drop:
		err = c.drop(ctx, a, ref.Job, args)
	case ledger.Adopt:
		err = c.adopt(ctx, a, ref.Job, args)
	default:
		err = ledger.UnknownVerb(verb)
	}
	if errors.Is(err, pg.ErrDryRun) {
		return a.Answer(ctx, c.Pool, reason.Reason{}, "")
	}
	return err
}

func (c *Controller) retireAndWait(ctx context.Context, a ledger.Actor, ref job.Ref, args ledger.Args) error {
	if err := c.retire(ctx, a, ref, args); err != nil {
		return err
	}
	ended, err := c.retired(ctx, ref)
	if err != nil {
		return err
	}
	return c.awaitEnd(ctx, a, ref, ended)
}

func (c *Controller) retired(ctx context.Context, ref job.Ref) (reason.Reason, error) {
	if ref.Adopted() {
		return reason.Retired(ref, ref.Table(), nil), nil
	}
	_, layout, err := ledger.ReadSpec(ctx, c.Pool, ref)
	return reason.Retired(ref, "", job.Version{Ref: ref, Layout: layout}.Tables()), err
}

// final makes an answer of an error that is neither a refusal nor one after which another try may succeed.
func (c *Controller) final(ctx context.Context, a ledger.Actor, err error) error {
	_, refused := ledger.AnswerOf(err)
	if err == nil || refused || errors.Is(err, ledger.ErrLost) || ctx.Err() != nil || pg.Unreachable(err) {
		return err
	}
	c.Log.Error("request failed", "request", a.Request, "error", err)
	return ledger.RefuseFor(job.ExitFailed, "", reason.Error(err))
}

// awaitEnd answers when nothing of a version is left.
func (c *Controller) awaitEnd(ctx context.Context, a ledger.Actor, ref job.Ref, ended reason.Reason) error {
	for {
		v, err := ledger.ReadVersion(ctx, c.Pool, ref)
		if err != nil {
			return err
		}
		if v.EndedAt != nil || v.Phase == job.Standby { // an abort of a deployment that only flips ends nothing
			return a.Answer(ctx, c.Pool, ended, "kappactl status "+string(ref.Job))
		}
		if retry.Sleep(ctx, c.config.Tick/4) != nil {
			return ctx.Err()
		}
	}
}
