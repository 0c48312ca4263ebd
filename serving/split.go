package serving

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// versionColumn is the first column of the view of all arms: the version that a row is of.
const versionColumn = "_ver"

// Split makes the view show each reader one arm of an experiment. Beside it come the view of all arms and a function
// that returns the rows for a subject. The contract stays as it is, and CREATE OR REPLACE VIEW is the last statement:
// note writes the contract before it. The caller sets the lock timeout.
//
// The arms are a UNION ALL in which each branch shows its version as a constant, and the serving view filters them by a
// scalar subquery: PostgreSQL evaluates it once for each statement and skips the other branches. A WHERE inside of the
// branches would keep it from using their indexes (docs/decisions/390).
func (*Store) Split(ctx context.Context, tx *pg.Tx, c job.ViewSplit, note func(contract json.RawMessage) error) error {
	if err := split(ctx, tx, c, note); err != nil {
		return fmt.Errorf("split %s: %w", c.View, err)
	}
	return nil
}

// armChange is the change of the view to one arm alone.
func armChange(c job.ViewSplit, arm job.Version) job.ViewChange {
	return job.ViewChange{View: c.View, To: arm.Ref, Layout: arm.Layout, Contract: c.Contract}
}

func split(ctx context.Context, tx *pg.Tx, c job.ViewSplit, note func(json.RawMessage) error) error {
	raw := tx.Raw()
	for _, name := range []job.ViewName{c.View.ArmsView(), c.View.ForFunction()} {
		if err := checkNames("the name", name.Name); err != nil {
			return err
		}
	}
	before, err := parseContract(c.Contract)
	if err != nil {
		return err
	}
	role, err := mayCreate(ctx, raw, c.View.Schema)
	if err != nil {
		return err
	}
	stands, err := readView(ctx, raw, armChange(c, c.Arms[0]))
	if err != nil {
		return err
	}
	if stands == nil {
		return notOurs(fmt.Sprintf("the view %s is gone", c.View), "kappactl deploy FILE makes it again")
	}
	if err := stands.refuse(c.View, role, before); err != nil {
		return err
	}
	after := *before
	after.Options, after.Owner, after.Comment = stands.Options, stands.Owner, stands.Comment
	if after.Grants, err = readGrants(ctx, raw, stands.OID); err != nil {
		return err
	}
	body, err := after.armsBody(ctx, raw, c, stands)
	if err != nil {
		return err
	}
	h := armViews{view: c.View, job: c.Job, contract: &after, role: role}
	if err := h.write(ctx, raw, body); err != nil {
		return err
	}
	if err := h.writeFunction(ctx, tx, routed(c, "nullif($1, '')")); err != nil {
		return err
	}
	text, err := json.Marshal(after)
	if err != nil {
		return err
	}
	if err := note(text); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, fmt.Sprintf("CREATE OR REPLACE VIEW %s%s AS\n%s", qualified(c.View.Schema, c.View.Name),
		withOptions(after.Options),
		h.from(routed(c, "nullif(current_setting("+subjectSetting+", true), '')"))))
	return refused(err)
}

// armsBody is the SELECT of the view of all arms. It opens the tables of the arms to those who may read the view.
func (c *Contract) armsBody(ctx context.Context, tx pgx.Tx, s job.ViewSplit, stands *viewFacts) (string, error) {
	seen, err := readThrough(ctx, tx, stands.OID)
	if err != nil {
		return "", err
	}
	var branches []string
	for _, arm := range s.Arms {
		change := armChange(s, arm)
		if err := c.keepsRowsHidden(ctx, tx, change, seen); err != nil {
			return "", err
		}
		text := (&Store{}).Select(arm)
		candidate, err := describe(ctx, tx, text)
		if err != nil {
			return "", badSQL(err, arm.Layout)
		}
		branch, err := c.branch(arm.Number.String(), text, candidate)
		if err != nil {
			return "", err
		}
		branches = append(branches, branch)
		if err := c.open(ctx, tx, change, seen.Readers, nil); err != nil {
			return "", err
		}
	}
	return strings.Join(branches, "\nUNION ALL\n"), nil
}

// branch is the SELECT of one arm: its version, then the contract's columns. What the arm has beside them is not shown.
func (c *Contract) branch(version, text string, candidate []Column) (string, error) {
	candidate = slices.DeleteFunc(slices.Clone(candidate), func(v Column) bool {
		return !slices.ContainsFunc(c.Columns, func(w Column) bool { return w.Name == v.Name })
	})
	items, err := c.items(candidate)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("SELECT %s::text AS %s, %s\nFROM (%s\n) AS q", literal(version), versionColumn,
		strings.Join(items, ", "), text), nil
}

// subjectSetting is the name of the setting as a constant. It is written so that it stays the same whatever the
// control schema is called.
const subjectSetting = `U&'kappactl\002esubject'`

// routed is the condition that leaves the rows of one arm.
func routed(c job.ViewSplit, subject string) string {
	arms := make([]string, len(c.Arms))
	for i, a := range c.Arms {
		arms[i] = a.Number.String()
	}
	return fmt.Sprintf("u.%s = (SELECT kappactl.pick(%s, %d, %s, %s, '{%s}'::text[]))", versionColumn,
		literal(string(c.Job)), c.Run, subject,
		literal(arms[0]), strings.Join(arms, ","))
}
