package programs

import (
	"context"
	"path"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// Steps are what the life cycle asks about positions that work moves by itself; implemented by speedlayer.Direct.
type Steps interface {
	Freeze(ctx context.Context, tx *pg.Tx, v job.Version, frozen []job.Frozen) error
	Extend(ctx context.Context, tx *pg.Tx, ref job.Ref, frozen []job.Frozen) error
	Before(ctx context.Context, db pg.DB, ref job.Ref) (int, error)
	Deadlines(ctx context.Context, db pg.DB, ref job.Ref, at func(job.Partition, int64) *time.Time) error
	Fill(ctx context.Context, pool *pg.Pool, v job.Version) error
	Moved(ctx context.Context, pool *pg.Pool, v job.Version) (int64, bool, error)
	Seal(ctx context.Context, tx *pg.Tx, v job.Version) error
	Expire(ctx context.Context, pool *pg.Pool, v job.Version) (int64, error)
	Remove(ctx context.Context, tx *pg.Tx, v job.Version) error
}

// Positions are taken over, kept and given up by a Runner; implemented by speedlayer.Direct.
type Positions interface {
	// Take gives owner a share of a version's positions under a claim that fences every earlier owner of them.
	Take(ctx context.Context, pool *pg.Pool, ref job.Ref, owner string, lease time.Duration, share, of int) (int64,
		[]job.Owned, error)
	// Keep prolongs the lease and returns how many positions the claim still holds.
	Keep(ctx context.Context, db pg.DB, ref job.Ref, owner string, claim int64, lease time.Duration) (int, error)
	Free(ctx context.Context, db pg.DB, ref job.Ref, owner string, claim int64) error
	// Fault notes a fault on one partition of a claim, or with a zero partition on all of them.
	Fault(ctx context.Context, db pg.DB, ref job.Ref, owner string, claim int64, on job.Partition, f job.Fault) error
	// MoveTo moves positions of a claim forward.
	MoveTo(ctx context.Context, db pg.DB, ref job.Ref, owner string, claim int64, next map[job.Partition]int64) error
	// Trouble notes that work on a version fails on an agent; a zero reason takes the note back.
	Trouble(ctx context.Context, db pg.DB, ref job.Ref, agent string, why reason.Reason) error
}

// Brokers answers questions about the topics and the consumer groups of programs; implemented by *kafka.Admin.
type Brokers interface {
	Offsets(ctx context.Context, names []string) ([]job.PartitionFacts, error)
	GroupOffsets(ctx context.Context, group string) (map[string]int64, error)
	CommitGroup(ctx context.Context, group string, next map[job.Partition]int64) error
}

// Engine prepares and removes the work of versions of engine: program.
type Engine struct{ Steps }

// Held reports whether the program commits by kappactl.advance, which no commit beyond a hold passes.
func (Engine) Held(s *job.Spec) bool { return s.Program != nil && s.Program.Commit == job.CommitTable }

// Keyed reports true: programs write rows by their key from the beginning.
func (Engine) Keyed(*job.Spec) bool { return true }

// Freeze writes positions and instances.
func (e Engine) Freeze(ctx context.Context, tx *pg.Tx, v job.Version, frozen []job.Frozen) error {
	if err := e.Steps.Freeze(ctx, tx, v, frozen); err != nil {
		return err
	}
	return addInstances(ctx, tx, v.Ref)
}

// Remove deletes positions and instances.
func (e Engine) Remove(ctx context.Context, tx *pg.Tx, v job.Version) error {
	if err := removeInstances(ctx, tx, v.Ref); err != nil {
		return err
	}
	return e.Steps.Remove(ctx, tx, v)
}

// Allows reports whether one of the patterns of agent.programs, as path.Match reads them, covers a program.
func Allows(patterns []string, program string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, program); ok && err == nil {
			return true
		}
	}
	return false
}
