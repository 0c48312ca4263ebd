package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// Act does what a request asks for. It answers the request itself, or returns a refusal that becomes the answer.
type Act func(ctx context.Context, a Actor, verb Verb, ref job.Ref, args Args) error

// Perform reads a request under a claim, lets act do it, and answers what act has refused. It returns an error when
// another try may succeed, and nil when the request is answered, taken over by another agent, or ctx ended.
func Perform(ctx context.Context, pool *pg.Pool, log *slog.Logger, request, claim int64, act Act) error {
	r, err := readRequest(ctx, pool, request, claim)
	if errors.Is(err, ErrLost) || ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	var args Args
	if err := json.Unmarshal([]byte(r.Args), &args); err != nil {
		return WriteAnswer(ctx, pool, r.ID, claim, Answer{Code: job.ExitUsage, Reason: reason.RequestUnreadable()})
	}
	a := Actor{Request: r.ID, Claim: claim, By: r.By, Role: r.Role}
	ref := job.Ref{Job: job.Name(r.Job), Number: job.Number(r.Number)}
	log.Info("request", "request", r.ID, "verb", r.Verb, "job", r.Job, "version", ref.Number.String(), "by", r.By)
	err = act(ctx, a, r.Verb, ref, args)
	if err == nil || errors.Is(err, ErrLost) || ctx.Err() != nil {
		return nil
	}
	answer, refused := AnswerOf(err)
	if pg.Unreachable(err) || !refused {
		limited, cancel := context.WithTimeout(ctx, SlowLock) // the server may be what does not answer
		defer cancel()
		if noted := a.NoteTrouble(limited, pool, reason.TriedAgain(pg.Cause(err))); noted != nil {
			log.Info("the failure of a request cannot be recorded", "request", r.ID, "error", noted)
		}
		return err
	}
	if err := WriteAnswer(ctx, pool, a.Request, a.Claim, answer); err != nil && !errors.Is(err, ErrLost) {
		return err
	}
	return nil
}

// UnknownVerb refuses a request of a newer release.
func UnknownVerb(verb Verb) error {
	return Refuse(job.ExitUsage, "", "this release does not know the request %q; it is answered by a newer one", verb)
}
