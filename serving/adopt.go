package serving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// adoptable is a relation that a serving view may take the place of.
type adoptable struct {
	OID       int64  `db:"oid"`
	Kind      string // as selectTaken names it
	Owner     string
	Mine      bool // our role has the owner's rights
	Guarded   bool // by row level security
	TakenName string
	Comment   string
}

// dependant is an object that depends on a relation. A view has an oid and its definition, everything else only a
// description.
type dependant struct {
	OID    *int64 `db:"oid"`
	What   string
	Schema string
	Name   string
	Owner  string
	Mine   bool
}

func (d dependant) view() job.ViewName { return job.ViewName{Schema: d.Schema, Name: d.Name} }

// Inspect says what adopting the relation at the view's name would do. What cannot be adopted is a *job.Refusal; rights
// are judged by Adopt.
func (*Store) Inspect(ctx context.Context, db pg.DB, view job.ViewName, to job.Ref) (job.Adoption, error) {
	a := job.Adoption{To: to, View: view}
	if err := errors.Join(checkNames("view", view.Schema, view.Name), checkNames("table", to.Table())); err != nil {
		return a, err
	}
	r, err := readAdoptable(ctx, db, view, to)
	if err != nil {
		return a, err
	}
	if err := r.refuse(view, to); err != nil {
		return a, err
	}
	a.OID, a.Kind, a.Owner = r.OID, r.Kind, r.Owner
	columns, err := readColumns(ctx, db, r.OID)
	if err != nil {
		return a, err
	}
	for _, c := range columns {
		a.Columns = append(a.Columns, job.ViewColumn{
			Name: c.Name, Type: c.Type, Finish: "s." + ident(c.Name),
			StoredAs: "as it was", Exact: true,
		})
	}
	if len(columns) == 0 {
		return a, notOurs(fmt.Sprintf("%s has no columns", view), "choose another serve.view")
	}
	if a.Copied() {
		return a, nil
	}
	found, err := readDependantsOf(ctx, db, r.OID)
	for _, d := range found {
		if d.OID != nil {
			a.Follow = append(a.Follow, d.What)
		} else {
			a.Stay = append(a.Stay, d.What)
		}
	}
	return a, err
}

func readAdoptable(ctx context.Context, db pg.DB, view job.ViewName, to job.Ref) (*adoptable, error) {
	rows, err := db.Query(ctx, selectAdoptable, pgx.NamedArgs{
		"schema": view.Schema, "name": view.Name,
		"table": to.Table(),
	})
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", view, err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[adoptable])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, &job.Refusal{
			Code: job.ExitUsage, Cause: fmt.Sprintf("there is no relation %s to adopt", view),
			Next: "kappactl deploy FILE makes the view by itself",
		}
	}
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", view, err)
	}
	return r, nil
}

// refuse says what cannot become a serving view.
func (r *adoptable) refuse(view job.ViewName, to job.Ref) error {
	switch {
	case r.Kind == "":
		return notOurs(fmt.Sprintf("%s is neither a table nor a view", view),
			"choose another serve.view, or rename what is there")
	case r.Guarded:
		return notOurs(fmt.Sprintf("%s has row level security, which the tables of later versions would not have: readers would see rows that it hides", view),
			"choose another serve.view and let a view of yours, which filters, read it")
	case r.TakenName != "":
		return notOurs(fmt.Sprintf("%s exists, and is where %s would go",
			job.ViewName{Schema: view.Schema, Name: to.Table()}, view), "rename or drop it, or choose another job name")
	}
	return nil
}

func readDependantsOf(ctx context.Context, db pg.DB, oid int64) ([]dependant, error) {
	rows, err := db.Query(ctx, selectDependantsOf, pgx.NamedArgs{"oid": oid})
	if err != nil {
		return nil, fmt.Errorf("read what depends on the table: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[dependant])
	if err != nil {
		return nil, fmt.Errorf("read what depends on the table: %w", err)
	}
	return found, nil
}

// Adopt puts a view in the relation's place: the relation is renamed to the version's name, and owner, grants and
// comments are the same on the view; views over the relation read the view from then on. The caller sets the lock
// timeout, and commits at once, for readers wait. It returns the contract.
func (s *Store) Adopt(ctx context.Context, tx *pg.Tx, a job.Adoption) (json.RawMessage, error) {
	t := taking{
		tx: tx, a: a, view: qualified(a.View.Schema, a.View.Name), table: qualified(a.View.Schema, a.To.Table()),
		text: s.Select(job.Version{Ref: a.To, Schema: a.View.Schema, Layout: a.Layout()}),
	}
	err := t.read(ctx)
	if err == nil {
		err = t.rights(ctx)
	}
	if err != nil {
		return nil, err
	}
	if a.Copied() {
		err = t.copyView(ctx)
	} else {
		err = t.replaceTable(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("adopt %s: %w", a.View, err)
	}
	contract, err := t.contract(ctx)
	if err != nil {
		return nil, fmt.Errorf("adopt %s: %w", a.View, err)
	}
	return json.Marshal(contract)
}

// contract reads what readers have from now on.
func (t *taking) contract(ctx context.Context) (*Contract, error) {
	change := job.ViewChange{View: t.a.View, To: t.a.To}
	v, err := readView(ctx, t.tx.Raw(), change)
	if err != nil {
		return nil, err
	}
	c := &Contract{Columns: v.columns, Options: v.Options, Owner: v.Owner, Comment: v.Comment}
	if c.Grants, err = readGrants(ctx, t.tx.Raw(), v.OID); err != nil {
		return nil, err
	}
	// The version's relation has no rows of its own to hide: what it reads is checked for each reader still.
	return c, c.open(ctx, t.tx.Raw(), change, []string{v.Owner}, c.Grants)
}

// rights names the right that is missing.
func (t *taking) rights(ctx context.Context) error {
	role, err := mayCreate(ctx, t.tx.Raw(), t.a.View.Schema)
	if err != nil {
		return err
	}
	owners := map[string]string{}
	if !t.relation.Mine {
		owners[t.relation.Owner] = t.a.View.String()
	}
	for _, d := range t.follow {
		if !d.Mine {
			owners[d.Owner] = d.view().String()
		}
	}
	for owner, what := range owners {
		return &job.Refusal{
			Code:  job.ExitUnreachable,
			Cause: fmt.Sprintf("role %s may not change %s: it belongs to %s", pgIdent(role), what, pgIdent(owner)),
			Next:  fmt.Sprintf("GRANT %s TO %s", pgIdent(owner), pgIdent(role)),
		}
	}
	return nil
}

// withoutCheck are a view's options but check_option, which a view over an aggregate cannot have.
func withoutCheck(options []string) []string {
	var out []string
	for _, o := range options {
		if !strings.HasPrefix(o, "check_option=") {
			out = append(out, o)
		}
	}
	return out
}
