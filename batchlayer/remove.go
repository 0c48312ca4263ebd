package batchlayer

import (
	"context"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// needsRemoval selects the generations r of which something is to be removed: kept ones when enough others are kept
// that readers left later, failed ones once a later one is live, and what was left half removed. A version that ends
// removes its tables itself.
var needsRemoval = fmt.Sprintf(`r.dropped_at IS NULL AND r.state IN ('kept', 'failed', 'retired')
	AND EXISTS (SELECT FROM kappactl.version v WHERE v.job = r.job AND v.number = r.number AND v.ended_at IS NULL
	    AND v.phase IN ('catching_up', 'caught_up', 'verified', 'live', 'standby')
	    AND CASE r.state
	        WHEN 'kept' THEN coalesce((v.spec #>> '{batch,keep_generations}')::integer, %d) <=
	             (SELECT count(*) FROM kappactl.generation n WHERE n.job = r.job AND n.number = r.number AND n.state = 'kept' AND (n.left_at, n.generation) > (r.left_at, r.generation))
	        WHEN 'failed' THEN EXISTS (SELECT FROM kappactl.generation n WHERE n.job = r.job AND n.number = r.number
	             AND n.state = 'live' AND n.live_at > r.ended_at)
	        ELSE true END)`, job.DefaultBatch().KeepGenerations)

// needsStatistics selects live generations r of runs that the statistics of the batch table do not count yet. The run
// does not wait for them: PostgreSQL reads every generation again, those that are kept, too.
const needsStatistics = `r.state = 'live' AND r.request IS NOT NULL AND NOT r.timings ? '` + stepAnalyze + `'`

const stepAnalyze = "analyze"

// Tend renews the statistics of the batch table when a generation has become live, and removes one that is not needed
// any more.
func (r *Runner) Tend(ctx context.Context, id, claim int64) error {
	g, err := generation.ByID(ctx, r.Pool, id)
	if err != nil || g == nil {
		return err
	}
	if g.State != generation.Live {
		return r.Remove(ctx, id, claim)
	}
	v, err := r.load(ctx, g.Ref())
	if err != nil {
		return err
	}
	began := r.Now()
	if err := r.Serving.AnalyzeBatch(ctx, r.Pool, v.Version); err != nil {
		return err
	}
	return generation.NoteAnalyzed(ctx, r.Pool, id, r.Now().Sub(began))
}

// Remove removes a generation under a claim: it is marked, waited for, taken out of the batch table and dropped; then
// go the rows of epochs that no generation needs any more. Each part can be repeated by another agent.
func (r *Runner) Remove(ctx context.Context, id, claim int64) error {
	g, err := generation.ByID(ctx, r.Pool, id)
	if err != nil || g == nil {
		return err
	}
	v, err := r.load(ctx, g.Ref())
	if err != nil {
		return err
	}
	tell := func(ctx context.Context, why reason.Reason) error {
		return generation.NoteTrouble(ctx, r.Pool, id, claim, why)
	}
	err = pass(ctx, r.remove(ctx, v, g, claim, tell))
	if err == nil || pg.Unreachable(err) {
		return err
	}
	return errors.Join(err, tell(ctx, reason.TriedAgain(causeOf(err))))
}

// causeOf is the cause of a refusal, or what the server said.
func causeOf(err error) string {
	if a, refused := ledger.AnswerOf(err); refused {
		return a.Text()
	}
	return pg.Cause(err)
}

func (r *Runner) remove(ctx context.Context, v version, g *generation.Row, claim int64, tell teller) error {
	if err := r.retire(ctx, v, g, claim, tell); err != nil {
		return err
	}
	r.hit(FaultBatchRetired)
	if err := r.awaitReaders(ctx, g, tell); err != nil {
		return err
	}
	if err := r.Serving.Detach(ctx, r.Pool, v.Version, g.Generation); err != nil {
		return err
	}
	r.hit(FaultBatchDetached)
	if err := r.Serving.DropMember(ctx, r.Pool, v.Version, g.Generation); err != nil {
		return err
	}
	err := r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error { return r.Speed.EndBuild(ctx, tx, v.Version, g.Generation) })
	if err != nil {
		return err
	}
	r.hit(FaultBatchDropped)
	return r.forget(ctx, v, g)
}

// pass drops what the end of ctx causes, and the loss of a claim.
func pass(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, ledger.ErrLost) || errors.Is(err, generation.ErrMoved) {
		return nil
	}
	return err
}

// retire marks the generation, so that it is never shown again.
func (r *Runner) retire(ctx context.Context, v version, g *generation.Row, claim int64, tell teller) error {
	return r.whileLocked(ctx, tell, func(ctx context.Context) error {
		return r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
			if err := ledger.LockTimeout(ctx, tx, r.config.LockTimeout); err != nil {
				return err
			}
			if _, err := ledger.LockVersion(ctx, tx, v.Ref); err != nil {
				return err
			}
			held, err := generation.Held(ctx, tx, g.ID, claim)
			switch {
			case err != nil:
				return err
			case !held:
				return ledger.ErrLost
			case g.State == generation.Retired:
				return nil
			}
			on := generation.Outdated
			if g.State == generation.Failed {
				on = generation.Cleared
			}
			return generation.Move(ctx, tx, v.Ref, g.Generation, on)
		})
	})
}

// awaitReaders waits until no session of the database holds a snapshot in which the generation is live: such a reader
// would miss its rows without an error, also when it has not touched the batch table yet.
func (r *Runner) awaitReaders(ctx context.Context, g *generation.Row, tell teller) error {
	for n := 0; ; n++ {
		readers, err := generation.Readers(ctx, r.Pool, g.ID)
		if err != nil {
			return err
		}
		if len(readers) == 0 {
			return nil
		}
		if n == 0 {
			r.Log.Info("an old batch generation waits for open snapshots", "job", g.Job, "version",
				job.Number(g.Number).String(),
				"generation", g.Generation, "readers", readers)
		}
		if n >= toldAfter {
			if err := tell(ctx, reason.BatchWaitsReaders(readers)); err != nil {
				return err
			}
		}
		if err := retry.Sleep(ctx, retry.Backoff(n+1, r.config.Poll, 16*r.config.Poll)); err != nil {
			return err
		}
	}
}

// forget deletes the rows of epochs older than the oldest generation that readers may be shown, and notes the end.
func (r *Runner) forget(ctx context.Context, v version, g *generation.Row) error {
	if g.LeftAt != nil { // one that was never live holds no epochs
		oldest, err := generation.Oldest(ctx, r.Pool, v.Ref, g.Generation)
		if err != nil {
			return err
		}
		if _, err := r.Speed.DropEpochs(ctx, r.Pool, v.Version, oldest); err != nil {
			return err
		}
	}
	return r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := generation.NoteDropped(ctx, tx, g.ID); err != nil {
			return err
		}
		return ledger.AddEvent(ctx, tx, entry(ledger.Actor{}, v.Ref, ledger.EventBatchRemoved,
			reason.BatchRemoved(v.Ref, g.Generation)))
	})
}
