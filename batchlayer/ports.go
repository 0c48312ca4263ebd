package batchlayer

import (
	"context"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Brokers answers questions about topics of the Kafka cluster; implemented by *kafka.Admin.
type Brokers interface {
	Offsets(ctx context.Context, names []string) ([]job.PartitionFacts, error)
}

// SpeedLayer reads and writes positions, segments and staging tables for runs; speedlayer.Store implements it.
type SpeedLayer interface {
	// Cut locks the positions of a version, as commits do, and returns what its table holds of each partition.
	Cut(ctx context.Context, tx *pg.Tx, ref job.Ref) ([]job.Frozen, error)
	// Rotate makes commits write rows of another epoch.
	Rotate(ctx context.Context, tx *pg.Tx, ref job.Ref, epoch int) error
	Gaps(ctx context.Context, db pg.DB, ref job.Ref) ([]job.PartitionRange, error)
	// PassedOver are the offsets that a person left out of the version because they cannot be processed.
	PassedOver(ctx context.Context, db pg.DB, ref job.Ref) ([]job.PartitionRange, error)
	Positions(ctx context.Context, db pg.DB, ref job.Ref) ([]job.Position, error)

	// BeginBuild cuts the ranges into segments, which agents then read, and makes the staging table. Repeatable.
	BeginBuild(ctx context.Context, tx *pg.Tx, b job.Build) error
	BuildProgress(ctx context.Context, db pg.DB, ref job.Ref, generation int) (job.BuildProgress, error)
	// FillMember replaces the content of the generation's table by the merge of what is staged and of the base.
	// Repeatable.
	FillMember(ctx context.Context, pool *pg.Pool, b job.Build) error
	// EndBuild deletes segments and staging. Repeatable.
	EndBuild(ctx context.Context, tx *pg.Tx, v job.Version, generation int) error
	// DropEpochs deletes the rows of the version's table whose epoch is older than the given one.
	DropEpochs(ctx context.Context, pool *pg.Pool, v job.Version, before int) (int64, error)
}

// Serving is the tables behind the serving view; implemented by serving.Store. All of it is repeatable.
type Serving interface {
	CreateMember(ctx context.Context, db pg.DB, v job.Version, generation int) error
	IndexMember(ctx context.Context, db pg.DB, v job.Version, generation int) error
	AnalyzeMember(ctx context.Context, db pg.DB, v job.Version, generation int) error
	AnalyzeBatch(ctx context.Context, db pg.DB, v job.Version) error
	Attach(ctx context.Context, pool *pg.Pool, v job.Version, generation int) error
	Detach(ctx context.Context, db pg.DB, v job.Version, generation int) error
	DropMember(ctx context.Context, db pg.DB, v job.Version, generation int) error
	// Show makes readers see another generation; false when they do not see the expected one.
	Show(ctx context.Context, tx *pg.Tx, v job.Version, from, to int) (bool, error)
	// SelectGeneration returns the SELECT that merges a generation with the table's rows of the epochs from it up to
	// until, which is excluded. A nil until selects the generation alone.
	SelectGeneration(v job.Version, generation int, until *int) string
}

// Schedules pauses the schedule of a job; implemented by schedule.Store. It returns false when there is none to pause.
type Schedules interface {
	PauseFor(ctx context.Context, tx *pg.Tx, name job.Name, by string) (bool, error)
}
