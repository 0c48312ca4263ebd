package plan

import (
	"context"
	"encoding/json"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Store plans and stages. It is safe for concurrent use.
type Store struct{ pool *pg.Pool }

// New makes a Store on a migrated control schema.
func New(pool *pg.Pool) *Store { return &Store{pool: pool} }

// Brokers answers questions about the Kafka cluster; implemented by *kafka.Admin.
type Brokers interface {
	Topics(ctx context.Context, names []string) ([]job.TopicFacts, error)
	Offsets(ctx context.Context, names []string) ([]job.PartitionFacts, error)
	OffsetsAt(ctx context.Context, names []string, at time.Time) ([]job.PartitionFacts, error)
	Sizes(ctx context.Context, names []string) (map[job.Partition]int64, error)
	// Times are the timestamps of the first record at or behind each offset; unknown ones are left out.
	Times(ctx context.Context, at map[job.Partition]int64) (map[job.Partition]time.Time, error)
}

// History is Brokers as a job reads them, with what is kept beyond the logs; implemented by *archive.Log.
type History interface {
	Brokers
	// Archived holds the ranges that are read from the archive, by partition. Retention does not delete it.
	Archived(ctx context.Context, names []string) (map[job.Partition]job.Range, error)
}

// Histories gives what a job reads, with its archive. Nil: no job has one.
type Histories func(*job.Spec) History

// Of is that of a job; nil when there is none.
func (h Histories) Of(s *job.Spec) History {
	if h == nil {
		return nil
	}
	return h(s)
}

// Reading is that of a job, or the brokers when there is none.
func (h Histories) Reading(s *job.Spec, b Brokers) Brokers {
	if found := h.Of(s); found != nil {
		return found
	}
	return b
}

// Patience is how long a question about a job's history may take: most, or a minute when a file of the archive may have
// to be fetched.
func Patience(s *job.Spec, most time.Duration) time.Duration {
	if s.ReadsArchive() {
		return max(most, time.Minute)
	}
	return most
}

// Positions reads how far versions have read; implemented by speedlayer.Store.
type Positions interface {
	// Positions lists a version's partitions; while segments are open Next is the end of the contiguous done ones.
	Positions(ctx context.Context, db pg.DB, ref job.Ref) ([]job.Position, error)
	// Gaps are the accepted gaps of a version of which its results hold nothing.
	Gaps(ctx context.Context, db pg.DB, ref job.Ref) ([]job.PartitionRange, error)
}

// Serving reads version tables and the serving view; implemented by serving.Store.
type Serving interface {
	// Taken is the kind of relation that has the view's name ("table", "view", …), empty when none has.
	Taken(ctx context.Context, db pg.DB, view job.ViewName) (string, error)
	// Preflight refuses what would stop the build or the flip of a new version: a missing schema or role, a table's name
	// that is taken.
	Preflight(ctx context.Context, db pg.DB, view job.ViewName, to job.Ref, l job.Layout, grants map[string][]string) error
	// Check reports whether the candidate can take over the contract: *job.Refusal naming the column when it cannot.
	// Added columns need allow.
	Check(contract json.RawMessage, candidate job.Layout, allow bool) error
	// Select is the SELECT of one version as the view would show it, for checks and diff.
	Select(v job.Version) string
	// Dependants are other relations that read the table, without the serving view.
	Dependants(ctx context.Context, db pg.DB, v job.Version, view job.ViewName) ([]string, error)
	// ReadsJob reports whether the view is there and reads a version of the job.
	ReadsJob(ctx context.Context, db pg.DB, view job.ViewName, name job.Name) (bool, error)
	// Readers lists what reads the view.
	Readers(ctx context.Context, db pg.DB, view job.ViewName) ([]string, error)
	// Inspect returns what adopting would do; a *job.Refusal when it cannot be done.
	Inspect(ctx context.Context, db pg.DB, view job.ViewName, to job.Ref) (job.Adoption, error)
}
