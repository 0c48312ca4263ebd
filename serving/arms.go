package serving

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// armViews are the objects beside a split view: the view of all arms and the function for one subject.
type armViews struct {
	view     job.ViewName
	job      job.Name
	contract *Contract
	role     string // that makes them
}

func armsComment(name job.Name) string {
	return fmt.Sprintf("kappactl: the arms of the experiment of job %s, each row with its version", name)
}

// selectArms finds the object that has the name of the view of all arms.
const selectArms = `SELECT coalesce(obj_description(c.oid, 'pg_class'), '') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = @schema AND c.relname = @name`

// armsStand reports whether the view of all arms is there. One that kappactl did not make is refused.
func armsStand(ctx context.Context, db queryer, view job.ViewName, name job.Name) (bool, error) {
	arms := view.ArmsView()
	rows, err := db.Query(ctx, selectArms, pgx.NamedArgs{"schema": arms.Schema, "name": arms.Name})
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", arms, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	switch {
	case err != nil:
		return false, fmt.Errorf("look for %s: %w", arms, err)
	case len(found) == 0:
		return false, nil
	case found[0] != armsComment(name):
		return false, notOurs(fmt.Sprintf("%s exists and was not made by kappactl for an experiment", arms),
			"rename what is there")
	}
	return true, nil
}

// write makes the view of all arms, or replaces it, with the options and the grants of the serving view. The text
// holds SQL of job files, so it is run as it is.
func (h armViews) write(ctx context.Context, tx pgx.Tx, body string) error {
	stand, err := armsStand(ctx, tx, h.view, h.job)
	if err != nil {
		return err
	}
	if !stand {
		if err := h.noFunction(ctx, tx); err != nil {
			return err
		}
	}
	name := h.view.ArmsView()
	view := pg.Ident(name.Schema, name.Name)
	if err := pg.One(ctx, tx, fmt.Sprintf("CREATE OR REPLACE VIEW %s%s AS\n%s", view, withOptions(h.contract.Options),
		body)); err != nil {
		return refused(err)
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf("COMMENT ON VIEW %s IS %s", view, literal(armsComment(h.job)))); err != nil {
		return refused(err)
	}
	var grants []Grant
	for _, g := range h.contract.Grants {
		if g.Privilege == selectPrivilege {
			grants = append(grants, g)
		}
	}
	if h.contract.Owner != h.role { // the serving view is read with the rights of its owner
		grants = append(grants, Grant{Privilege: selectPrivilege, Role: h.contract.Owner})
	}
	return grant(ctx, tx, name, grants)
}

// noFunction refuses a function of somebody else at the name of the one for a subject.
func (h armViews) noFunction(ctx context.Context, tx pgx.Tx) error {
	name := h.view.ForFunction()
	text := pg.Ident(name.Schema, name.Name) + "(text)"
	rows, err := tx.Query(ctx, `SELECT to_regprocedure($1) IS NOT NULL`, text)
	if err != nil {
		return fmt.Errorf("look for %s: %w", text, err)
	}
	taken, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
	if err == nil && taken {
		err = notOurs(fmt.Sprintf("the function %s exists and was not made by kappactl for an experiment", text), "rename it")
	}
	return err
}

// from is the SELECT of the contract's columns over the view of all arms.
func (h armViews) from(where string) string {
	columns := make([]string, len(h.contract.Columns))
	for i, c := range h.contract.Columns {
		columns[i] = "u." + ident(c.Name)
	}
	arms := h.view.ArmsView()
	if where != "" {
		where = "\nWHERE " + where
	}
	return fmt.Sprintf("SELECT %s\nFROM %s AS u%s", strings.Join(columns, ", "), qualified(arms.Schema, arms.Name), where)
}

// writeFunction makes the function for one subject, or replaces it. PostgreSQL inlines it: it is SQL, not STRICT, and
// has no settings of its own. Its body is parsed now, so that callers need no rights on the control schema.
func (h armViews) writeFunction(ctx context.Context, tx *pg.Tx, where string) error {
	name := h.view.ForFunction()
	_, err := tx.Exec(ctx, fmt.Sprintf(`CREATE OR REPLACE FUNCTION %s(subject text) RETURNS SETOF %s LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
%s;
END`, qualified(name.Schema, name.Name), qualified(h.view.Schema, h.view.Name), h.from(where)))
	return refused(err)
}

// endSplit removes what an experiment left beside the view, once the view reads one version. When something depends on
// it, it stays and shows that version.
func endSplit(ctx context.Context, tx *pg.Tx, c job.ViewChange, after *Contract, text string,
	candidate []Column,
) error {
	raw := tx.Raw()
	stand, err := armsStand(ctx, raw, c.View, c.To.Job)
	if err != nil || !stand {
		return nil //nolint:nilerr // a relation of that name that is not ours is not in the way
	}
	dropped, err := dropArms(ctx, raw, c.View)
	if err != nil || dropped {
		return err
	}
	role, err := mayCreate(ctx, raw, c.View.Schema)
	if err != nil {
		return err
	}
	branch, err := after.branch(c.To.Number.String(), text, candidate)
	if err != nil {
		return err
	}
	h := armViews{view: c.View, job: c.To.Job, contract: after, role: role}
	if err := h.write(ctx, raw, branch); err != nil {
		return err
	}
	return h.writeFunction(ctx, tx, "")
}

// dropArms reports whether they are gone; false when something depends on them.
func dropArms(ctx context.Context, tx pgx.Tx, view job.ViewName) (dropped bool, err error) {
	save, err := tx.Begin(ctx)
	if err != nil {
		return false, err
	}
	arms, function := view.ArmsView(), view.ForFunction()
	_, err = save.Exec(ctx, fmt.Sprintf("DROP FUNCTION IF EXISTS %s(text); DROP VIEW %s",
		pg.Ident(function.Schema, function.Name), pg.Ident(arms.Schema, arms.Name)))
	if err == nil {
		return true, save.Commit(ctx)
	}
	undone := save.Rollback(ctx)
	if pg.Code(err) == pgerrcode.DependentObjectsStillExist {
		return false, undone
	}
	return false, errors.Join(refused(err), undone)
}
