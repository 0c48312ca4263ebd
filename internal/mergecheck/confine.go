package mergecheck

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/internal/reach"
)

const confineCure = "use the columns of the query, and functions that depend on their arguments alone " +
	"(docs/security.md: what job SQL can reach)"

// Confine returns job.Problems for everything outside the job that serve.columns and serve.where reach, and a
// *ServeError for SQL in them that PostgreSQL refuses. It does not run the SQL.
func Confine(ctx context.Context, d Deps, spec *job.Spec, c *query.Compiled) error {
	if len(spec.Serve.Columns) == 0 && spec.Serve.Where == "" {
		return nil
	}
	var found []reach.Placed
	err := d.In(ctx, &Runner{spec: spec, compiled: c}, func(b *Bench) error {
		return pg.Probe(ctx, b.tx, func(tx pgx.Tx) (err error) {
			found, err = d.Views.Breaches(ctx, tx, b.version, reach.Limit{Agent: d.Agent})
			return b.serveError(err)
		})
	})
	if err != nil || len(found) == 0 {
		return err
	}
	var ps job.Problems
	for _, f := range found {
		at := placeIn(serveText(spec, f.Path), f.Word)
		ps = append(ps, spec.ProblemAt(f.Path, at, job.PostgreSQL, f.Error(), confineCure))
	}
	return ps
}

// serveText returns the SQL at a path below serve.
func serveText(spec *job.Spec, path string) string {
	for _, c := range spec.Serve.Columns {
		if path == "serve.columns."+c.Name {
			return c.Expr
		}
	}
	return spec.Serve.Where
}

// placeIn returns the byte offset of a name in a SQL text, or 0 if the text spells it differently.
func placeIn(text, name string) int {
	if at := strings.Index(text, name); name != "" && at >= 0 {
		return at
	}
	return max(0, strings.Index(strings.ToLower(text), strings.ToLower(name)))
}
