// Package engine is what the life cycle of versions asks of the work behind them: of what reads a version's topics and
// writes its table. Each kind of work implements Engine; internal/cli joins them.
package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Engine prepares, completes and removes the work of versions; the work itself goes on by itself, on agents or
// elsewhere, and writes how far it is into the position rows. The steps are repeatable. Where a method takes a
// transaction, its effect is committed together with the version's next phase.
type Engine interface {
	// Held reports whether a version of this job file stops at a hold on its positions, so that two versions can be
	// compared and flipped at the same offsets. Versions that cannot be held are flipped within their limits of lag.
	Held(s *job.Spec) bool
	// Keyed reports whether the work needs the unique index of the version's table from its first write. Without it the
	// index is made after the replay.
	Keyed(s *job.Spec) bool

	// Freeze prepares the replay of the ranges: position rows with next = covers_from = From and frozen_end = To, and
	// whatever the work needs beside them. Partitions that have a position row are left alone.
	Freeze(ctx context.Context, tx *pg.Tx, v job.Version, frozen []job.Frozen) error
	// Extend moves the frozen ends to the given To; a partition without a position row gets one.
	Extend(ctx context.Context, tx *pg.Tx, ref job.Ref, frozen []job.Frozen) error
	// Before is how many replays come before that of the version.
	Before(ctx context.Context, db pg.DB, ref job.Ref) (int, error)
	// Deadlines notes when retention may delete what is not read yet, so that what goes first is read first.
	Deadlines(ctx context.Context, db pg.DB, ref job.Ref, at func(job.Partition, int64) *time.Time) error
	// Fill completes the version's table once everything up to the frozen ends is read.
	Fill(ctx context.Context, pool *pg.Pool, v job.Version) error
	// Moved counts, between Fill and Seal, the keys that were seen in more than one partition: exactly, or by a share of
	// them. It is asked of versions that keep the latest row of each key.
	Moved(ctx context.Context, pool *pg.Pool, v job.Version) (keys int64, exact bool, err error)
	// Seal ends the replay: every position is at its frozen end or beyond it.
	Seal(ctx context.Context, tx *pg.Tx, v job.Version) error
	// Expire deletes rows that serve.keep no longer keeps, in small transactions, and returns how many. A layout that is
	// no longer the version's deletes nothing.
	Expire(ctx context.Context, pool *pg.Pool, v job.Version) (int64, error)
	// Remove deletes the version's positions and what belongs to its work; dead letters stay.
	Remove(ctx context.Context, tx *pg.Tx, v job.Version) error
}

// Set holds the engines that this release knows, by their word in the job file.
type Set map[job.Engine]Engine

// Of returns the engine of a job file, or an error that names it when this release does not know it.
func (s Set) Of(spec *job.Spec) (Engine, error) {
	e, known := s[spec.Engine]
	if !known {
		return nil, fmt.Errorf("this release of kappactl does not know engine %q", spec.Engine)
	}
	return e, nil
}
