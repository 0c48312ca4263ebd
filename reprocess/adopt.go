package reprocess

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// adoptedReason is what is known of how far an adopted version is.
const adoptedReason = "it was there before the job: nothing is written to it by kappactl"

// adoptedKeep is how long an adopted version is what readers may go back to after the first promote: keep_old's default.
const adoptedKeep = 24 * time.Hour

// adoptableKind says that what stands at a view's name, as Views.Taken names it, can be adopted.
func adoptableKind(kind string) bool {
	return slices.Contains([]string{"table", "partitioned table", "foreign table", "materialized view", "view"}, kind)
}

// Adoption says what adopting a relation as the first version of a job would do. What adopt would refuse is a *job.Refusal.
func (s *Store) Adoption(ctx context.Context, name job.Name, args Args, adoptions Adoptions) (job.Adoption, error) {
	var a job.Adoption
	err := s.pool.ReadOnly(ctx, func(tx *pg.Tx) (err error) {
		a, err = adoption(ctx, tx, name, args, adoptions)
		return err
	})
	return a, err
}

// adoption is the plan; in the agent's transaction it is what is done.
func adoption(ctx context.Context, db pg.DB, name job.Name, args Args, adoptions Adoptions) (job.Adoption, error) {
	ref := job.Ref{Job: name}
	if args.View == nil {
		return job.Adoption{}, refuse(job.ExitUsage, "", "no view is named")
	}
	taken, err := jobsOf(ctx, db, name, *args.View)
	if err != nil {
		return job.Adoption{}, err
	}
	for _, j := range taken {
		status := "kappactl status " + j.Name
		switch {
		case j.Name != string(name):
			return job.Adoption{}, refuse(job.ExitConflict, status, "%s is the view of job %q", args.View, j.Name)
		case j.Live != nil && *j.Live == 0:
			return job.Adoption{}, refuse(job.ExitConflict, "kappactl deploy FILE", "job %q has adopted %s already", name, j.view())
		default:
			return job.Adoption{}, refuse(job.ExitConflict, status+"   # or choose another job name", "there is a job %q with versions of its own: adopt begins a job", name)
		}
	}
	a, err := adoptions.Inspect(ctx, db, *args.View, ref)
	if err != nil || len(a.Stay) == 0 || args.LeaveDependants {
		return a, err
	}
	return a, refuse(job.ExitConflict, "drop them first, or add --leave-dependants: they go on reading "+ref.Table()+", which is no longer written after the first promote",
		"what depends on %s and cannot follow to a view: %s", args.View, strings.Join(a.Stay, ", "))
}

// adopt makes a relation that stands version 0 of a new job, in one transaction that queues before readers for no longer than
// LockTimeout; tries repeat until the deadline.
func (c *Controller) adopt(ctx context.Context, a actor, name job.Name, args Args) error {
	_, err := c.until(ctx, Adopt, job.Ref{Job: name}, func(ctx context.Context) (string, error) {
		err := c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error { return c.adoptIn(ctx, tx, a, name, args) })
		if err != nil && args.View != nil {
			err = c.lockTrouble(ctx, "relation", *args.View, err)
		}
		var t *tryAgain
		if errors.As(err, &t) {
			t.next = job.AdoptCommand(name, *args.View)
		}
		return "", err
	})
	return err
}

func (c *Controller) adoptIn(ctx context.Context, tx *pg.Tx, a actor, name job.Name, args Args) error {
	if err := lockTimeout(ctx, tx, slowLock); err != nil {
		return err
	}
	if err := a.fence(ctx, tx); err != nil {
		return err
	}
	plan, err := adoption(ctx, tx, name, args, c.Adoptions)
	if err != nil {
		return err
	}
	id, err := insertAdopted(ctx, tx, plan, a.by)
	if err != nil {
		return err
	}
	text := adoptedWords(plan)
	e := entry{Job: string(name), Deployment: id, Kind: "adopt", Message: text, By: a.by}
	if err := addEvent(ctx, tx, e); err != nil {
		return err
	}
	if err := a.answer(ctx, tx, text, "kappactl plan FILE, then kappactl deploy FILE"); err != nil {
		return err
	}
	if err := c.beforeReaders(ctx, tx); err != nil {
		return err
	}
	contract, err := c.Adoptions.Adopt(ctx, tx, plan)
	if err != nil {
		return err
	}
	return setLive(ctx, tx, plan.To, contract)
}

func adoptedWords(a job.Adoption) string {
	table := job.ViewName{Schema: a.View.Schema, Name: a.To.Table()}
	if a.Copied() {
		return fmt.Sprintf("view %s is adopted: its definition is %s now, which it reads as %s", a.View, table, a.To)
	}
	return fmt.Sprintf("%s %s is adopted: it is %s now, and a view in its place reads it as %s", a.Kind, a.View, table, a.To)
}

// keyedAs takes columns of an adopted relation for keys that are keys of the version it is compared with.
func keyedAs(l, like job.Layout) job.Layout {
	l.View, l.Keys = slices.Clone(l.View), like.Keys
	for i, v := range l.View {
		l.View[i].Key = slices.ContainsFunc(like.View, func(k job.ViewColumn) bool { return k.Key && k.Name == v.Name && k.Type == v.Type })
	}
	return l
}

// adopted looks after a version that nothing works on: only the end of its rollback window is awaited.
func (w *watch) adopted(ctx context.Context, st *state) (next, error) {
	if st.Phase == job.Standby {
		return w.standby(ctx, st)
	}
	return later, nil
}
