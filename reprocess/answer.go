package reprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Answer does what a request asks for and answers it. It returns an error when another try may succeed, as when the
// database is away, and nil when the request is answered, taken over by somebody else, or ctx ended.
func (c *Controller) Answer(ctx context.Context, request, claim int64) error {
	r, err := readRequest(ctx, c.Pool, request, claim)
	if errors.Is(err, errLost) || ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	var args Args
	if err := json.Unmarshal([]byte(r.Args), &args); err != nil {
		return writeAnswer(ctx, c.Pool, r.ID, claim, Answer{Code: job.ExitUsage, Text: "the request's arguments cannot be read"})
	}
	a := actor{request: r.ID, claim: claim, by: r.By}
	ref := job.Ref{Job: job.Name(r.Job), Number: job.Number(r.Number)}
	c.Log.Info("request", "request", r.ID, "verb", r.Verb, "job", r.Job, "version", ref.Number.String(), "by", r.By)
	err = c.act(ctx, a, r.Verb, ref, args)
	c.hit(FaultPromoteAnswered)
	return c.conclude(ctx, a, err)
}

// act does one verb. The flips, pause and resume answer in their own transaction.
func (c *Controller) act(ctx context.Context, a actor, verb Verb, ref job.Ref, args Args) error {
	var err error
	switch verb {
	case Promote:
		_, err = c.promote(ctx, a, ref, args)
	case Rollback:
		_, err = c.rollback(ctx, a, ref, args)
	case Pause:
		_, err = c.pause(ctx, a, ref)
	case Resume:
		_, err = c.resume(ctx, a, ref, args.AcceptGap)
	case Abort:
		if err = c.abort(ctx, a, ref); err == nil {
			err = c.awaitEnd(ctx, a, ref, fmt.Sprintf("%s is aborted", ref))
		}
	case Retire:
		if err = c.retire(ctx, a, ref, args); err == nil {
			err = c.awaitEnd(ctx, a, ref, retiredWords(ref))
		}
	case Drop:
		err = c.drop(ctx, a, ref.Job, args)
	case Adopt:
		err = c.adopt(ctx, a, ref.Job, args)
	default:
		err = refuse(job.ExitUsage, "", "this release does not know the request %q; it is answered by a newer one", verb)
	}
	return err
}

func retiredWords(ref job.Ref) string {
	if ref.Adopted() {
		return fmt.Sprintf("%s is retired; table %s stays: it was there before the job", ref, ref.Table())
	}
	return fmt.Sprintf("%s is retired; its table is gone", ref)
}

// conclude answers what the act did not answer itself.
func (c *Controller) conclude(ctx context.Context, a actor, err error) error {
	switch {
	case err == nil || errors.Is(err, errLost):
		return nil
	case ctx.Err() != nil:
		return nil
	case pg.Unreachable(err):
		return err
	}
	answer, ok := answerOf(err)
	if !ok {
		answer = Answer{Code: job.ExitFailed, Text: err.Error()}
		c.Log.Error("request failed", "request", a.request, "error", err)
	}
	if err := writeAnswer(ctx, c.Pool, a.request, a.claim, answer); err != nil && !errors.Is(err, errLost) {
		return err
	}
	return nil
}

// awaitEnd answers when nothing of a version is left.
func (c *Controller) awaitEnd(ctx context.Context, a actor, ref job.Ref, text string) error {
	for {
		v, err := readVersion(ctx, c.Pool, ref)
		if err != nil {
			return err
		}
		if v.EndedAt != nil || v.Phase == job.Standby { // an abort of a deployment that only flips ends nothing
			return a.answer(ctx, c.Pool, text, "kappactl status "+string(ref.Job))
		}
		if !sleep(ctx, c.config.Tick/4) {
			return ctx.Err()
		}
	}
}
