package reprocess

import (
	"context"
	"encoding/json"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Topics is what the controller asks the brokers; implemented by *kafka.Admin.
type Topics interface {
	Topics(ctx context.Context, names []string) ([]job.TopicFacts, error)
	Offsets(ctx context.Context, names []string) ([]job.PartitionFacts, error)
	OffsetsAt(ctx context.Context, names []string, at time.Time) ([]job.PartitionFacts, error)
	Sizes(ctx context.Context, names []string) (map[job.Partition]int64, error)
	DeleteGroup(ctx context.Context, group string) error
}

// Log is what the controller asks about single records; implemented by *kafka.Admin.
type Log interface {
	// Times are the timestamps of the first record at or behind each offset; what is not known is left out.
	Times(ctx context.Context, at map[job.Partition]int64) (map[job.Partition]time.Time, error)
}

// Replays is the bounded part of a version's work; implemented by speedlayer.Store.
type Replays interface {
	// Freeze writes the position rows (next = covers_from = From, frozen_end = To), cuts the ranges into segments and makes
	// the staging table. Repeatable: partitions that have a position row are left alone.
	Freeze(ctx context.Context, tx *pg.Tx, ref job.Ref, schema string, l job.Layout, frozen []job.Frozen) error
	// Extend moves frozen_end to the given To and adds segments for what came since; a partition without a position row gets one.
	Extend(ctx context.Context, tx *pg.Tx, ref job.Ref, frozen []job.Frozen) error
	// Fill checks the rows per segment and replaces the version table's content by the merge of staging. Repeatable.
	Fill(ctx context.Context, pool *pg.Pool, ref job.Ref, schema string, l job.Layout) error
	// Moved counts, between Fill and Seal, the keys that were seen in more than one partition: exactly, or by a share of them.
	Moved(ctx context.Context, pool *pg.Pool, ref job.Ref, schema string, l job.Layout) (keys int64, exact bool, err error)
	// Seal sets next = frozen_end everywhere and drops staging.
	Seal(ctx context.Context, tx *pg.Tx, ref job.Ref, schema string) error
	// Remove deletes positions, segments and staging, keeps dead letters.
	Remove(ctx context.Context, tx *pg.Tx, ref job.Ref, schema string) error
}

// Queue is the order in which replays and their segments are read; implemented by speedlayer.Store.
type Queue interface {
	// Before is how many replays come before that of the version.
	Before(ctx context.Context, db pg.DB, ref job.Ref) (int, error)
	// Deadlines says of each segment that is not read when it may be deleted, so that those that go first are read first.
	Deadlines(ctx context.Context, db pg.DB, ref job.Ref, at func(job.Partition, int64) *time.Time) error
}

// Positions is how far versions are and the barrier over two of them (architecture §9); implemented by speedlayer.Store.
type Positions interface {
	// Positions lists a version's partitions; while segments are open Next is the end of the contiguous done ones.
	Positions(ctx context.Context, db pg.DB, ref job.Ref) ([]job.Position, error)
	// Hold locks the rows of both versions in (topic id, partition, version) order and sets hold = max(next), hold_until, hold_by on
	// the partitions that both read.
	Hold(ctx context.Context, tx *pg.Tx, by string, ttl time.Duration, a, b job.Ref) error
	// Reached says that every row held by `by` has next = hold and the hold has not expired. lock takes the rows FOR UPDATE.
	Reached(ctx context.Context, db pg.DB, by string, lock bool) (bool, error)
	Release(ctx context.Context, db pg.DB, by string) error
	// Follow gives a partition that appeared later a position at From (live phases, no segments).
	Follow(ctx context.Context, tx *pg.Tx, ref job.Ref, f job.Frozen) error
}

// Gaps lets a version go on behind offsets that the log no longer holds; implemented by speedlayer.Store.
type Gaps interface {
	// AcceptGap moves the position behind the gap and notes it. False: that gap does not stand as a fault of the version.
	AcceptGap(ctx context.Context, tx *pg.Tx, ref job.Ref, topic string, partition int32, gap job.Range, by string) (bool, error)
}

// Tables is the DDL of version tables; implemented by serving.Store. Every step is repeatable.
type Tables interface {
	Create(ctx context.Context, db pg.DB, ref job.Ref, schema string, l job.Layout) error
	Index(ctx context.Context, db pg.DB, ref job.Ref, schema string, l job.Layout) error // unique index NULLS NOT DISTINCT
	Analyze(ctx context.Context, db pg.DB, ref job.Ref, schema string) error
	Dependants(ctx context.Context, db pg.DB, ref job.Ref, view job.ViewName) ([]string, error) // other relations that read the table, without the serving view
	Drop(ctx context.Context, db pg.DB, ref job.Ref, schema string) error                       // never CASCADE
}

// Removals is what drop asks of serving views; implemented by serving.Store.
type Removals interface {
	// ReadsJob says that the view stands and reads a version of the job.
	ReadsJob(ctx context.Context, db pg.DB, view job.ViewName, name job.Name) (bool, error)
	// Readers lists what reads the view.
	Readers(ctx context.Context, db pg.DB, view job.ViewName) ([]string, error)
	// DropView drops it, never what depends on it.
	DropView(ctx context.Context, tx *pg.Tx, view job.ViewName) error
	// LeaveView notes on the view and on the table it reads that nothing writes them any more.
	LeaveView(ctx context.Context, tx *pg.Tx, view job.ViewName, live job.Ref) error
}

// Adoptions puts a serving view in the place of a relation that stands; implemented by serving.Store.
type Adoptions interface {
	// Inspect says what that would do; a *job.Refusal when it cannot be done.
	Inspect(ctx context.Context, db pg.DB, view job.ViewName, to job.Ref) (job.Adoption, error)
	// Adopt does it, and returns the contract of the view.
	Adopt(ctx context.Context, tx *pg.Tx, a job.Adoption) (json.RawMessage, error)
	// GiveBack gives the relation its name back, after the view was dropped.
	GiveBack(ctx context.Context, tx *pg.Tx, view job.ViewName, to job.Ref) error
}

// Expiry deletes rows that serve.keep no longer keeps; implemented by speedlayer.Store.
type Expiry interface {
	// Expire deletes expired rows of a version in small transactions and says how many. A layout that is no longer the
	// version's deletes nothing.
	Expire(ctx context.Context, pool *pg.Pool, ref job.Ref, schema string, l job.Layout) (int64, error)
}

// Views is the serving view; implemented by serving.Store.
type Views interface {
	// Taken says what stands at the view's name, empty when nothing does ("table", "view", …).
	Taken(ctx context.Context, db pg.DB, view job.ViewName) (string, error)
	// Check says whether the candidate can take over the contract: *job.Refusal naming the column when it cannot.
	// Added columns need allow.
	Check(contract json.RawMessage, candidate job.Layout, allow bool) error
	// Switch makes the view read the version and returns the contract as it is after that: one CREATE OR REPLACE VIEW
	// written from the contract (NULL::type for contract columns that the version lacks), grants kept.
	Switch(ctx context.Context, tx *pg.Tx, c job.ViewChange) (json.RawMessage, error)
	// Select is the SELECT of one version as the view would show it, for checks and diff.
	Select(ref job.Ref, schema string, l job.Layout) string
}

// Hooks are commands that people want asked, or told, of what happens; implemented by hooks.Service. What only tells is done from the
// history, without this package.
type Hooks interface {
	// Wants says that some hook is told of an event of a job.
	Wants(on job.HookEvent, of job.Name) bool
	// Before runs the commands that are asked and ends with the first that refuses. An error is the end of ctx.
	Before(ctx context.Context, facts job.HookFacts) ([]job.HookOutcome, error)
}
