package serving

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
)

// viewFacts describes the serving view as the catalogue has it.
type viewFacts struct {
	OID        int64 `db:"oid"`
	Kind       string
	Options    []string
	Owner      string
	MayReplace bool
	Comment    string
	ReadsJob   bool

	columns []Column
}

func readView(ctx context.Context, tx queryer, c job.ViewChange) (*viewFacts, error) {
	rows, err := tx.Query(ctx, selectView, pgx.NamedArgs{
		"schema": c.View.Schema, "name": c.View.Name,
		"job": string(c.To.Job),
	})
	if err != nil {
		return nil, fmt.Errorf("read the view: %w", err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, func(r pgx.CollectableRow) (*viewFacts, error) {
		var v viewFacts
		return &v, r.Scan(&v.OID, &v.Kind, &v.Options, &v.Owner, &v.MayReplace, &v.Comment, &v.ReadsJob)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the view: %w", err)
	}
	v.columns, err = readColumns(ctx, tx, v.OID)
	return v, err
}

func readColumns(ctx context.Context, db queryer, oid int64) ([]Column, error) {
	rows, err := db.Query(ctx, selectViewColumns, pgx.NamedArgs{"oid": oid})
	if err != nil {
		return nil, fmt.Errorf("read the view's columns: %w", err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByName[Column])
	if err != nil {
		return nil, fmt.Errorf("read the view's columns: %w", err)
	}
	return columns, nil
}

// refuse returns why the existing view must not, or cannot, be replaced.
func (v *viewFacts) refuse(name job.ViewName, role string, contract *Contract) error {
	ident := pgx.Identifier{name.Schema, name.Name}.Sanitize()
	switch {
	case contract == nil || v.Kind != "v":
		return notOurs(fmt.Sprintf("%s exists and is not a view of this job", ident),
			"set serve.view to another name, or rename what is there")
	case !v.ReadsJob:
		return notOurs(fmt.Sprintf("%s was replaced by hand: it reads no version of this job", ident),
			"rename or drop that view; the next try makes it again")
	case !sameColumns(v.columns, contract.Columns):
		return notOurs(fmt.Sprintf("the columns of %s were changed by hand", ident),
			"rename that view; the next try makes it again")
	case !v.MayReplace:
		return &job.Refusal{
			Code:  job.ExitUnreachable,
			Cause: fmt.Sprintf("role %s may not replace %s: it belongs to %s", pgIdent(role), ident, pgIdent(v.Owner)),
			Next:  fmt.Sprintf("GRANT %s TO %s", pgIdent(v.Owner), pgIdent(role)),
		}
	}
	return nil
}

func sameColumns(a, b []Column) bool {
	return slices.EqualFunc(a, b, func(x, y Column) bool { return x.Name == y.Name && x.Type == y.Type })
}

// markLacking marks the columns that the version does not have.
func markLacking(columns, candidate []Column) []Column {
	out := slices.Clone(columns)
	for i := range out {
		out[i].Lacking = !slices.ContainsFunc(candidate, func(c Column) bool { return c.Name == out[i].Name })
	}
	return out
}
