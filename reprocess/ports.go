package reprocess

import (
	"context"
	"encoding/json"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/sampling"
)

// Brokers answers questions about the Kafka cluster; implemented by *kafka.Admin.
type Brokers interface {
	plan.Brokers
	DeleteGroup(ctx context.Context, group string) error
}

// SpeedLayer reads and moves the positions of versions of every engine; implemented by speedlayer.Store.
type SpeedLayer interface {
	sampling.Speed

	// Hold locks the rows of both versions in (topic id, partition, version) order and sets hold = max(next), hold_until,
	// hold_by on the partitions that both read.
	Hold(ctx context.Context, tx *pg.Tx, by string, ttl time.Duration, a, b job.Ref) error
	// Reached reports whether every row held by `by` has next = hold and the hold has not expired. lock takes the rows FOR
	// UPDATE.
	Reached(ctx context.Context, db pg.DB, by string, lock bool) (bool, error)
	Release(ctx context.Context, db pg.DB, by string) error

	// AcceptGap moves the position behind the offsets of a fault and notes them. False: no partition has a fault of that
	// range.
	AcceptGap(ctx context.Context, tx *pg.Tx, ref job.Ref, topic string, partition int32, gap job.Range, by string) (bool,
		error)
	// Retry clears the version's faults, so that what they stopped is tried again, and returns the partitions.
	Retry(ctx context.Context, tx *pg.Tx, ref job.Ref) ([]string, error)
}

// Serving is the version tables and the serving view; implemented by serving.Store. Every step on a table is
// repeatable.
type Serving interface {
	plan.Serving

	Create(ctx context.Context, db pg.DB, v job.Version) error
	Index(ctx context.Context, db pg.DB, v job.Version) error // unique index NULLS NOT DISTINCT
	Analyze(ctx context.Context, db pg.DB, v job.Version) error
	Drop(ctx context.Context, db pg.DB, v job.Version) error // never CASCADE

	// Switch makes the view read the version: one CREATE OR REPLACE VIEW written from the contract (NULL::type for
	// contract columns that the version lacks), grants kept. note gets the contract as it is then, before that last
	// statement.
	Switch(ctx context.Context, tx *pg.Tx, c job.ViewChange, note func(contract json.RawMessage) error) error

	// DropView drops it, never what depends on it.
	DropView(ctx context.Context, tx *pg.Tx, view job.ViewName, name job.Name) error
	// LeaveView notes on the view and on the table it reads that nothing writes them any more.
	LeaveView(ctx context.Context, tx *pg.Tx, view job.ViewName, live job.Ref) error

	// Adopt does it, and returns the contract of the view.
	Adopt(ctx context.Context, tx *pg.Tx, a job.Adoption) (json.RawMessage, error)
	// GiveBack gives the relation its name back, after the view was dropped.
	GiveBack(ctx context.Context, tx *pg.Tx, view job.ViewName, to job.Ref) error
}

// Hooks are commands that people want asked, or told, of what happens; implemented by hooks.Service. What only tells is
// done from the history, without this package.
type Hooks interface {
	// Wants reports whether a hook is told of an event of a job.
	Wants(on job.HookEvent, of job.Name) bool
	// Before runs the commands that are asked and ends with the first that refuses. An error is the end of ctx.
	Before(ctx context.Context, facts job.HookFacts) ([]job.HookOutcome, error)
}
