package ledger

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// Experiments are the tests that split the readers of jobs between versions; implemented by abtest.Store.
type Experiments interface {
	// EndByFlip ends the test of a job, if there is one, in the transaction of a flip to a version. A promote to a
	// version that is not an arm of it is a refusal; a rollback ends it whatever the version.
	EndByFlip(ctx context.Context, tx *pg.Tx, to job.Ref, back bool, by string) error
}

// IsArm reports whether readers read the version in the running experiment of its job.
func (st *State) IsArm() bool { return slices.Contains(st.Arms, st.Ref().Number.String()) }

// RefuseArm is the refusal of what would take a version from the readers who read it in an experiment.
func (st *State) RefuseArm() error {
	return RefuseFor(job.ExitConflict, StopCommand(st.Ref().Job), reason.ABArm(st.Ref()))
}

// StopCommand ends the experiment of a job.
func StopCommand(name job.Name) string { return "kappactl ab stop " + string(name) }

// NoExperiment refuses what cannot be done to a job whose readers are split between versions.
func NoExperiment(ctx context.Context, db pg.DB, name job.Name) error {
	runs, err := pg.Collect(ctx, db, pgx.RowTo[int], `SELECT run FROM kappactl.route WHERE job = @job`,
		pgx.NamedArgs{"job": string(name)})
	if err != nil || len(runs) == 0 {
		return Wrap(err, "look for an experiment of %s", name)
	}
	return RefuseFor(job.ExitConflict, StopCommand(name), reason.ABRunning(name, runs[0]))
}
