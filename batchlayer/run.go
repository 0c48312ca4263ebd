package batchlayer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// version is a lambda version with its job file.
type version struct {
	job.Version
	spec *job.Spec
}

// policy is where the version's runs read.
func (v version) policy() archive.Policy {
	return archive.ReplayPolicy(v.spec.Replay.Source, v.spec.Archive != nil)
}

// load reads a version as its job file is now; one that is not lambda is a refusal.
func (r *Runner) load(ctx context.Context, ref job.Ref) (version, error) {
	if _, err := ledger.ReadVersion(ctx, r.Pool, ref); err != nil {
		return version{}, err
	}
	spec, layout, err := ledger.ReadSpec(ctx, r.Pool, ref)
	if err != nil {
		return version{}, err
	}
	if !layout.Lambda {
		return version{}, ledger.RefuseFor(job.ExitUsage, "kappactl status "+string(ref.Job), reason.NotLambda(ref))
	}
	return version{job.Version{Ref: ref, Schema: spec.Serve.View.Schema, Layout: layout}, spec}, nil
}

// run computes a generation for a request and shows it. What another agent has done of it is not done again.
func (r *Runner) run(ctx context.Context, a ledger.Actor, ref job.Ref, args ledger.Args) error {
	v, err := r.load(ctx, ref)
	if err != nil {
		return err
	}
	g, err := generation.Asked(ctx, r.Pool, a.Request)
	if err == nil && g == nil {
		g, err = r.accept(ctx, a, ref, args)
	}
	if err == nil && g == nil {
		g, err = r.waitAndStart(ctx, a, v, args)
	}
	if err != nil {
		return err
	}
	b := &build{Runner: r, actor: a, v: v, row: *g, args: args}
	err = b.steps(ctx)
	if end := b.endingOf(err); end != nil {
		return b.give(ctx, end)
	}
	return err
}

// endingOf returns the ending for the error of a step, or nil if another try may succeed. A refusal is final: the next
// try would be refused too, and the generation must not be built further once the request is answered.
func (b *build) endingOf(err error) *ending {
	var end *ending
	if errors.As(err, &end) {
		return end
	}
	refusal, refused := ledger.AnswerOf(err)
	if !refused || pg.Unreachable(err) {
		return nil
	}
	return &ending{
		code: refusal.Code, why: reason.BatchUnreadable(b.v.Ref, b.number(), refusal.Reason), kind: ledger.EventBatchFailed,
		next: refusal.Next,
	}
}

// waitAndStart begins a generation. The run of a schedule waits for one that is under way; that of a person is refused.
func (r *Runner) waitAndStart(ctx context.Context, a ledger.Actor, v version, args ledger.Args) (*generation.Row,
	error,
) {
	for args.Tick != nil {
		building, err := generation.In(ctx, r.Pool, v.Ref, generation.Building)
		if err != nil {
			return nil, err
		}
		if building == nil {
			break
		}
		if err := retry.Sleep(ctx, r.config.Poll); err != nil {
			return nil, err
		}
	}
	return r.start(ctx, a, v, args)
}

// ending is why a run ends without showing its generation.
type ending struct {
	code job.ExitCode
	why  reason.Reason
	next string
	kind ledger.EventKind
	diff any // for the history
}

func (e *ending) Error() string { return e.why.Text() }

// build is one generation on its way. The goroutine of run owns it.
type build struct {
	*Runner
	actor ledger.Actor
	v     version
	row   generation.Row
	args  ledger.Args
}

func (b *build) number() int { return b.row.Generation }

// steps are done in order; one that is noted as done is not done again.
func (b *build) steps(ctx context.Context) error {
	for _, s := range []struct {
		name, fault string
		run         func(context.Context) error
	}{
		{"begin", FaultBatchBegun, b.begin},
		{"read", FaultBatchRead, b.read},
		{"fill", FaultBatchFilled, b.fill},
		{"index", FaultBatchIndexed, b.index},
		{"compare", FaultBatchCompared, b.compare},
		{"attach", FaultBatchAttached, b.attach},
	} {
		if err := b.look(ctx); err != nil {
			return err
		}
		if b.row.Done(s.name) {
			continue
		}
		began := b.Now()
		if err := b.during(ctx, s.run); err != nil {
			return err
		}
		b.hit(s.fault)
		if err := b.done(ctx, s.name, b.Now().Sub(began)); err != nil {
			return err
		}
	}
	if err := b.look(ctx); err != nil {
		return err
	}
	return b.show(ctx)
}

// done notes that a step is done, and that nothing keeps the run from going on.
func (b *build) done(ctx context.Context, step string, took time.Duration) error {
	timings := map[string]float64{step: took.Seconds()}
	if err := generation.NoteTimings(ctx, b.Pool, b.v.Ref, b.number(), timings); err != nil {
		return err
	}
	return b.tell(ctx, reason.Reason{})
}

// tell notes what keeps the run from going on; the zero Reason: nothing.
func (b *build) tell(ctx context.Context, why reason.Reason) error {
	return b.actor.NoteTrouble(ctx, b.Pool, why)
}

// look reads the generation again before a step, and ends the run as current does.
func (b *build) look(ctx context.Context) error {
	row, err := b.current(ctx)
	if err == nil {
		b.row = *row
	}
	return err
}

// current reads the generation, and returns an ending when it was given up or its run makes no sense any more. A step
// may be at work meanwhile: b is not changed.
func (b *build) current(ctx context.Context) (*generation.Row, error) {
	row, err := generation.Read(ctx, b.Pool, b.v.Ref, b.number())
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, ledger.ErrLost
	}
	brief, err := ledger.ReadVersion(ctx, b.Pool, b.v.Ref)
	switch {
	case err != nil:
		return nil, err
	case (row.State == generation.Failed || row.State == generation.Retired) && row.ExitCode != nil: // retired by its removal
		return nil, &ending{code: job.ExitCode(*row.ExitCode), why: row.Error}
	case row.State == generation.Failed || !runnable(brief.Phase):
		return nil, &ending{
			code: job.ExitFailed, why: reason.BatchVersionEnded(b.v.Ref, b.number(), brief.Phase), kind: ledger.EventBatchFailed,
			next: "kappactl status " + string(b.v.Job),
		}
	}
	return row, b.baseIsLive(ctx, b.Pool)
}

// baseIsLive ends a run whose base is no longer live: merged into it, results would go back to what a person left.
func (b *build) baseIsLive(ctx context.Context, db pg.DB) error {
	if b.row.Base == nil {
		return nil
	}
	live, err := generation.In(ctx, db, b.v.Ref, generation.Live)
	if err != nil || live != nil && live.Generation == *b.row.Base {
		return err
	}
	return &ending{
		code: job.ExitConflict, why: reason.BatchVoid(b.v.Ref, b.number(), *b.row.Base), kind: ledger.EventBatchFailed,
		next: command("run", b.v.Job),
	}
}

// during runs a step, and ends it soon after its generation is given up.
func (b *build) during(ctx context.Context, step func(context.Context) error) error {
	within, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	finished := make(chan error, 1)
	go func() { finished <- step(within) }()
	for {
		tick, cancel := context.WithTimeout(ctx, 4*b.config.Poll)
		select {
		case err := <-finished:
			cancel()
			return err
		case <-tick.Done():
			cancel()
		}
		var end *ending
		if _, err := b.current(ctx); errors.As(err, &end) || errors.Is(err, ledger.ErrLost) {
			stop(errGivenUp)
			<-finished //nolint:errcheck // the run ends for another cause
			return err
		}
	}
}

var errGivenUp = errors.New("the generation is given up")

// give ends the generation for the given cause, unless that was done, and answers who asked.
func (b *build) give(ctx context.Context, e *ending) error {
	answer := ledger.Answer{Code: e.code, Reason: e.why, Next: e.next}
	if answer.Next == "" {
		answer.Next = command("list", b.v.Job)
	}
	err := b.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := b.actor.Fence(ctx, tx); err != nil {
			return err
		}
		err := generation.Fail(ctx, tx, b.v.Ref, b.number(), e.code, e.why)
		switch {
		case errors.Is(err, generation.ErrMoved): // given up by another act, which noted it
		case err != nil:
			return err
		default:
			event := entry(b.actor, b.v.Ref, e.kind, e.why)
			event.Detail = e.diff
			if err := ledger.AddEvent(ctx, tx, event); err != nil {
				return err
			}
		}
		return ledger.WriteAnswer(ctx, tx, b.actor.Request, b.actor.Claim, answer)
	})
	if err != nil {
		return err
	}
	b.Log.Warn("batch run ended", "job", b.v.Job, "version", b.v.Number.String(), "generation", b.number(), "reason",
		e.why.Text())
	return b.end(ctx)
}

// end deletes what the workers needed.
func (b *build) end(ctx context.Context) error {
	err := b.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error { return b.Speed.EndBuild(ctx, tx, b.v.Version, b.number()) })
	if err != nil {
		return fmt.Errorf("end the build of generation %d of %s: %w", b.number(), b.v.Ref, err)
	}
	return nil
}
