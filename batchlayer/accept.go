package batchlayer

import (
	"context"
	"errors"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// accept resumes the generation that was refused last, if a person accepts its changes and no other generation was
// begun since. The view then shows the rows that were compared. It returns nil if there is no such generation; the
// caller computes a new one.
func (r *Runner) accept(ctx context.Context, a ledger.Actor, ref job.Ref, args ledger.Args) (*generation.Row, error) {
	if !args.AcceptChanges || args.Full {
		return nil, nil //nolint:nilnil // there is none
	}
	number := -1
	err := r.whileLocked(ctx, r.telling(a), func(ctx context.Context) error {
		return r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) (err error) {
			number, err = r.acceptIn(ctx, tx, a, ref)
			return err
		})
	})
	if err != nil || number < 0 {
		return nil, err
	}
	return generation.Read(ctx, r.Pool, ref, number)
}

func (r *Runner) acceptIn(ctx context.Context, tx *pg.Tx, a ledger.Actor, ref job.Ref) (number int, err error) {
	if _, err := r.lockLive(ctx, tx, a, ref); err != nil {
		return -1, err
	}
	all, err := generation.List(ctx, tx, ref)
	if err != nil || len(all) == 0 || !refused(all[0]) {
		return -1, err
	}
	number = all[0].Generation
	err = generation.Accept(ctx, tx, ref, number, a.Request)
	if errors.Is(err, generation.ErrMoved) || errors.Is(err, generation.ErrBuilding) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	return number, ledger.AddEvent(ctx, tx, entry(a, ref, ledger.EventBatchStarted, reason.BatchAccepted(ref, number)))
}

// refused reports whether a generation is whole and was not shown because of what it holds.
func refused(g generation.Row) bool {
	return g.State == generation.Failed && g.DroppedAt == nil && g.ExitCode != nil &&
		job.ExitCode(*g.ExitCode) == job.ExitChecks
}
