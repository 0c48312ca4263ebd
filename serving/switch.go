package serving

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Taken returns the kind of the relation at the view's name; empty when there is none.
func (*Store) Taken(ctx context.Context, db pg.DB, view job.ViewName) (string, error) {
	rows, err := db.Query(ctx, selectTaken, pgx.NamedArgs{"schema": view.Schema, "name": view.Name})
	if err != nil {
		return "", fmt.Errorf("look for %s: %w", view, err)
	}
	kinds, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", fmt.Errorf("look for %s: %w", view, err)
	}
	return strings.Join(kinds, ""), nil
}

// Switch makes the view read c.To. An existing view keeps its options, owner, grants, comment and columns, and CREATE
// OR REPLACE VIEW is the last statement: note writes the contract as it is then before it. The caller sets the lock
// timeout.
func (s *Store) Switch(ctx context.Context, tx *pg.Tx, c job.ViewChange,
	note func(contract json.RawMessage) error,
) error {
	err := s.switchView(ctx, tx, c, func(contract *Contract) error {
		text, err := json.Marshal(contract)
		if err != nil {
			return err
		}
		return note(text)
	})
	if err != nil {
		return fmt.Errorf("switch %s to %s: %w", c.View, c.To.Number, err)
	}
	return nil
}

func (s *Store) switchView(ctx context.Context, pgTx *pg.Tx, c job.ViewChange, note func(*Contract) error) error {
	tx := pgTx.Raw()
	if err := checkNames("view", c.View.Schema, c.View.Name); err != nil {
		return err
	}
	spec, err := specGrants(c.Grant)
	if err != nil {
		return err
	}
	before, err := parseContract(c.Contract)
	if err != nil {
		return err
	}
	current, err := readView(ctx, tx, c)
	if err != nil {
		return err
	}
	role, err := mayCreate(ctx, tx, c.View.Schema)
	if err != nil {
		return err
	}
	text := s.Select(c.Version())
	candidate, err := describe(ctx, tx, text)
	if err != nil {
		return badSQL(err, c.Layout)
	}
	if current == nil {
		after, err := create(ctx, tx, c, before, candidate, text, spec)
		if err != nil {
			return err
		}
		return note(after) // a view without readers yet
	}
	if err := current.refuse(c.View, role, before); err != nil {
		return err
	}
	after, err := replace(ctx, tx, c, before, current, candidate, text, spec, note)
	if err != nil {
		return err
	}
	return endSplit(ctx, pgTx, c, after, text, candidate)
}

// replace rewrites an existing view.
func replace(
	ctx context.Context, tx pgx.Tx, c job.ViewChange, before *Contract, current *viewFacts, candidate []Column,
	text string, spec []Grant,
	note func(*Contract) error,
) (*Contract, error) {
	columns, body, err := before.body(text, candidate)
	if err != nil {
		return nil, err
	}
	after := &Contract{
		Columns: columns, Options: current.Options, Owner: current.Owner, Comment: current.Comment,
		Spec: spec,
	}
	seen, err := readThrough(ctx, tx, current.OID)
	if err != nil {
		return nil, err
	}
	if err := after.keepsRowsHidden(ctx, tx, c, seen); err != nil {
		return nil, err
	}
	if after.Grants, after.Stood, err = regrant(ctx, tx, c.View, current.OID, before, spec); err != nil {
		return nil, err
	}
	if err := after.open(ctx, tx, c, seen.Readers, without(spec, before.Spec)); err != nil {
		return nil, err
	}
	if err := note(after); err != nil {
		return nil, err
	}
	sql := fmt.Sprintf("CREATE OR REPLACE VIEW %s%s AS\n%s", pg.Ident(c.View.Schema, c.View.Name),
		withOptions(current.Options), body)
	if err := pg.One(ctx, tx, sql); err != nil {
		return nil, refused(err)
	}
	return after, nil
}

// create makes the view: the first time, or again from the contract when somebody dropped it.
func create(ctx context.Context, tx pgx.Tx, c job.ViewChange, before *Contract, candidate []Column, text string,
	spec []Grant,
) (*Contract, error) {
	again := before != nil
	if !again {
		before = &Contract{Comment: fmt.Sprintf("Serving view of job %s. kappactl switches it between versions: read it, do not replace it.", c.To.Job)}
	}
	_, body, err := before.body(text, candidate)
	if err != nil {
		return nil, err
	}
	view := pg.Ident(c.View.Schema, c.View.Name)
	if err := pg.One(ctx, tx, fmt.Sprintf("CREATE VIEW %s%s AS\n%s", view, withOptions(before.Options),
		body)); err != nil {
		return nil, refused(err)
	}
	kept := without(before.Grants, without(without(before.Spec, spec), before.Stood))
	if err := grant(ctx, tx, c.View, merge(kept, without(spec, before.Spec))); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf("COMMENT ON VIEW %s IS %s", view, literal(before.Comment))); err != nil {
		return nil, refused(err)
	}
	current, err := readView(ctx, tx, c)
	if err != nil {
		return nil, err
	}
	after := &Contract{
		Options: current.Options, Owner: current.Owner, Comment: current.Comment, Spec: spec,
		Stood: both(before.Stood, spec),
	}
	if after.Grants, err = readGrants(ctx, tx, current.OID); err != nil {
		return nil, err
	}
	after.Columns = markLacking(current.columns, candidate)
	return after, after.open(ctx, tx, c, append(before.Readers, after.Owner), without(spec, before.Spec))
}
