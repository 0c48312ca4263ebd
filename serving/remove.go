package serving

import (
	"context"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// ReadsJob reports whether the view exists and reads a version of the job: what was put in its place by hand is not
// ours.
func (*Store) ReadsJob(ctx context.Context, db pg.DB, view job.ViewName, name job.Name) (bool, error) {
	v, err := readView(ctx, db, job.ViewChange{View: view, To: job.Ref{Job: name}})
	return v != nil && v.Kind == "v" && v.ReadsJob, err
}

// DropView drops a serving view, never what depends on it. The caller sets the lock timeout.
func (*Store) DropView(ctx context.Context, tx *pg.Tx, view job.ViewName, name job.Name) error {
	text := "DROP VIEW IF EXISTS " + qualified(view.Schema, view.Name)
	stand, err := armsStand(ctx, tx.Raw(), view, name)
	if stand && err == nil { // kept for what depended on them
		arms, function := view.ArmsView(), view.ForFunction()
		text = fmt.Sprintf("DROP FUNCTION IF EXISTS %s(text); %s, %s", qualified(function.Schema, function.Name), text,
			qualified(arms.Schema, arms.Name))
	}
	if _, err := tx.Exec(ctx, text); err != nil {
		return fmt.Errorf("drop view %s: %w", view, refused(err))
	}
	return nil
}

// LeaveView notes on a view, and on the tables it reads, that kappactl has left them.
func (*Store) LeaveView(ctx context.Context, tx *pg.Tx, view job.ViewName, live job.Ref) error {
	text := fmt.Sprintf("Was served by kappactl job %s until it was dropped; reads %s, which nothing writes any more.",
		live.Job, live.Table())
	steps := []string{comment("VIEW", qualified(view.Schema, view.Name), text)}
	if !live.Adopted() {
		left := fmt.Sprintf("Read by view %s. Written by kappactl job %s until it was dropped.", view, live.Job)
		// Of a version of mode kappa nothing else of those names is ours.
		found, err := ownRelations(ctx, tx, job.Version{Ref: live, Schema: view.Schema, Layout: job.Layout{Lambda: true}})
		if err != nil {
			return err
		}
		for _, f := range found {
			if f.ours(live) {
				steps = append(steps, comment("TABLE", qualified(view.Schema, f.Name), left))
			}
		}
		more, err := leftLayers(ctx, tx, job.Version{Ref: live, Schema: view.Schema, Layout: job.Layout{Lambda: true}}, left)
		if err != nil {
			return err
		}
		steps = append(steps, more...)
	}
	if _, err := tx.Exec(ctx, strings.Join(steps, "; ")); err != nil {
		return fmt.Errorf("note on view %s that it was left: %w", view, refused(err))
	}
	return nil
}
