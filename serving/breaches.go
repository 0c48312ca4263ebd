package serving

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reach"
)

// Breaches are the objects that serve.columns and serve.where of a version use and must not: relations, functions of
// more than their arguments, types with code of others. Nothing of the SQL is run. The version's table is there.
func (s *Store) Breaches(ctx context.Context, tx pgx.Tx, v job.Version, limit reach.Limit) ([]reach.Placed, error) {
	limit.Relations = nil
	for _, name := range v.Tables() {
		limit.Relations = append(limit.Relations, qualified(v.Schema, name))
	}
	own := slices.DeleteFunc(slices.Clone(v.Layout.View), func(c job.ViewColumn) bool { return c.Computed })
	if len(own) == len(v.Layout.View) && v.Layout.Where == "" {
		return nil, nil
	}
	// What kappactl writes itself for the query's columns may call more functions of PostgreSQL.
	known, err := s.breaches(ctx, tx, v, own, "", limit)
	if err != nil {
		return nil, err
	}
	bound := "." + v.Known() + "()" // of the pointer, in another schema than PostgreSQL's own
	known = slices.DeleteFunc(known, func(b reach.Breach) bool {
		return b.Kind != reach.Function || strings.Contains(b.Name, ".") && !strings.HasSuffix(b.Name, bound)
	})
	var out []reach.Placed
	for _, c := range v.Layout.View {
		if !c.Computed {
			continue
		}
		found, err := s.breaches(ctx, tx, v, append(slices.Clone(own), c), "", limit)
		if err != nil {
			return nil, err
		}
		out = appendPlaced(out, "serve.columns."+c.Name, reach.Without(found, known))
	}
	if v.Layout.Where == "" {
		return out, nil
	}
	for _, p := range out {
		known = append(known, p.Breach)
	}
	found, err := s.breaches(ctx, tx, v, v.Layout.View, v.Layout.Where, limit)
	return appendPlaced(out, "serve.where", reach.Without(found, known)), err
}

func appendPlaced(to []reach.Placed, path string, breaches []reach.Breach) []reach.Placed {
	for _, b := range breaches {
		to = append(to, reach.Placed{Path: path, Breach: b})
	}
	return to
}

// breaches are those of one SELECT over the version's table, which is made a view in a savepoint.
func (s *Store) breaches(
	ctx context.Context, tx pgx.Tx, v job.Version, columns []job.ViewColumn, where string, limit reach.Limit,
) (found []reach.Breach, err error) {
	v.Layout.View, v.Layout.Where = columns, where
	save, err := tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, save.Rollback(ctx)) }()
	return reach.Breaches(ctx, save, qualified(v.Schema, v.Table()+"__reach"), s.Select(v), limit)
}

// confine refuses a version whose serve.columns or serve.where reach beyond the job, by the rights of the role that
// deployed it.
func (s *Store) confine(ctx context.Context, db pg.DB, v job.Version) error {
	author, err := pg.Collect(ctx, db, pgx.RowTo[string], selectAuthor,
		pgx.NamedArgs{"job": string(v.Job), "number": int(v.Number)})
	if err != nil {
		return fmt.Errorf("read who deployed %s: %w", v.Ref, err)
	}
	var found []reach.Placed
	err = pg.Probe(ctx, db, func(tx pgx.Tx) error {
		found, err = s.Breaches(ctx, tx, v, reach.Limit{Author: strings.Join(author, "")})
		return err
	})
	if err != nil {
		return fmt.Errorf("select from %s: %w", v.Ref, badSQL(err, v.Layout))
	}
	if len(found) == 0 {
		return nil
	}
	return &job.Refusal{
		Code: job.ExitUsage, Cause: fmt.Sprintf("%s: PostgreSQL SQL: %s", found[0].Path, found[0].Error()),
		Next: "correct the text in the job file and deploy again",
	}
}
