package checks

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// Positions reads and holds the offsets of versions for a Barrier and a run of checks; speedlayer.Store implements it.
type Positions interface {
	// Positions returns a version's partitions.
	Positions(ctx context.Context, db pg.DB, ref job.Ref) ([]job.Position, error)
	// Hold stops both versions at the larger offset of the two on each partition that both read, for ttl at most.
	Hold(ctx context.Context, tx *pg.Tx, by string, ttl time.Duration, a, b job.Ref) error
	// Reached reports whether every held partition is at its offset and the hold has not expired; lock locks the rows.
	Reached(ctx context.Context, db pg.DB, by string, lock bool) (bool, error)
	// Release ends the hold.
	Release(ctx context.Context, db pg.DB, by string) error
}

// Barrier stops two versions at the same offsets. It expires after HoldFor.
type Barrier struct {
	Pool      *pg.Pool
	Positions Positions
	HoldFor   time.Duration // how long the versions are held, and the time limit for reaching the offsets
	PollEvery time.Duration // interval of polling the offsets
	Log       *slog.Logger
	Reached   func() // called when both versions are at the same offsets; may be nil
}

// Missed reports that a barrier failed in a way that does not rule out a later one. Apart means that the versions did
// not reach the same offsets in time.
type Missed struct {
	Reason reason.Reason
	Apart  bool
	Err    error // may be nil
}

func (e *Missed) Error() string { return e.Reason.Text() }

// Unwrap returns the error of PostgreSQL or of the holder.
func (e *Missed) Unwrap() error { return e.Err }

// releaseTimeout bounds the statement that ends a barrier.
const releaseTimeout = 2 * time.Second

// Stop returns when both versions are at the same offsets. The caller releases the barrier, also after an error. It
// returns a *Missed if the versions do not reach the offsets, or if another barrier holds one of them.
func (b Barrier) Stop(ctx context.Context, by string, one, other job.Ref) error {
	err := b.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", b.HoldFor.Milliseconds())); err != nil {
			return err
		}
		return b.Positions.Hold(ctx, tx, by, b.HoldFor, one, other)
	})
	switch {
	case err == nil:
		return b.reach(ctx, by, one, other)
	case ctx.Err() != nil || pg.Unreachable(err):
		return err
	case pg.Code(err) == "" || pg.Retryable(err): // another barrier holds one of them
		return &Missed{Reason: reason.BarrierTaken(err), Err: err}
	}
	return err
}

// reach waits until both versions are at the barrier's offsets.
func (b Barrier) reach(ctx context.Context, by string, one, other job.Ref) error {
	limit := time.NewTimer(b.HoldFor)
	defer limit.Stop()
	look := time.NewTicker(b.PollEvery)
	defer look.Stop()
	for {
		there, err := b.Positions.Reached(ctx, b.Pool, by, false)
		switch {
		case err != nil:
			return err
		case there:
			if b.Reached != nil {
				b.Reached()
			}
			return nil
		}
		select {
		case <-look.C:
		case <-limit.C:
			return &Missed{Apart: true, Reason: reason.VersionsApart(one, other, b.HoldFor)}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Release ends a barrier, even if ctx has ended.
func (b Barrier) Release(ctx context.Context, by string) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := b.Positions.Release(limited, b.Pool, by); err != nil {
		b.Log.Warn("barrier not released; it expires by itself", "by", by, "error", err)
	}
}
