package plan

import (
	"context"
	"slices"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// adoptableKind reports whether the relation at a view's name, of the kind that Views.Taken names, can be adopted.
func adoptableKind(kind string) bool {
	return slices.Contains([]string{"table", "partitioned table", "foreign table", "materialized view", "view"}, kind)
}

// Adoption says what adopting a relation as the first version of a job would do. What adopt would refuse is a
// *job.Refusal.
func (s *Store) Adoption(ctx context.Context, name job.Name, args ledger.Args, serving Serving) (job.Adoption, error) {
	var a job.Adoption
	err := s.pool.ReadOnly(ctx, func(tx *pg.Tx) (err error) {
		a, err = Adopting(ctx, tx, name, args, serving)
		return err
	})
	return a, err
}

// Adopting is Adoption in a transaction: the agent acts by it.
func Adopting(ctx context.Context, db pg.DB, name job.Name, args ledger.Args, serving Serving) (job.Adoption, error) {
	ref := job.Ref{Job: name}
	if args.View == nil {
		return job.Adoption{}, ledger.RefuseFor(job.ExitUsage, "", reason.NoViewNamed())
	}
	taken, err := ledger.JobsOf(ctx, db, name, *args.View)
	if err != nil {
		return job.Adoption{}, err
	}
	for _, j := range taken {
		status := "kappactl status " + j.Name
		switch {
		case j.Name != string(name):
			return job.Adoption{}, ledger.RefuseFor(job.ExitConflict, status, reason.ViewOfOther(*args.View, j.Name))
		case j.Live != nil && *j.Live == 0:
			return job.Adoption{}, ledger.RefuseFor(job.ExitConflict, "kappactl deploy FILE",
				reason.AdoptedAlready(name, j.View()))
		default:
			return job.Adoption{}, ledger.RefuseFor(job.ExitConflict, status+"   # or choose another job name",
				reason.JobExists(name))
		}
	}
	a, err := serving.Inspect(ctx, db, *args.View, ref)
	if err != nil || len(a.Stay) == 0 || args.LeaveDependants {
		return a, err
	}
	return a, ledger.RefuseFor(job.ExitConflict,
		"drop them first, or add --leave-dependants: they go on reading "+ref.Table()+
			", which is no longer written after the first promote", reason.DependantsStay(*args.View, a.Stay))
}
