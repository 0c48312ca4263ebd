package checks

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reach"
)

// confine records the checks that use objects which the role that deployed the job file may not use itself. Checks with
// a role of their own may use what that role may. If the author has all rights of the agent, there is no limit.
func (r *Run) confine(ctx context.Context, tx *pg.Tx) error {
	if r.Role != "" {
		return nil
	}
	author, err := pg.Collect(ctx, tx, pgx.RowTo[string],
		`SELECT session_role FROM kappactl.version WHERE job = @job AND number = @number`,
		pgx.NamedArgs{"job": string(r.Candidate.Job), "number": int(r.Candidate.Number)})
	if err != nil || len(author) == 0 {
		return err
	}
	limit := reach.Limit{Author: author[0], Check: true}
	if equal, err := limit.Equal(ctx, tx.Raw()); equal || err != nil {
		return err
	}
	for name := range r.selects() {
		limit.Relations = append(limit.Relations, "pg_temp."+name)
	}
	r.refused = map[string]string{}
	for _, k := range r.Due {
		why, err := breach(ctx, tx, k, limit)
		if err != nil {
			return fmt.Errorf("look at what check %q reaches: %w", k.Name, err)
		}
		if why != "" {
			r.refused[k.Name] = why
		}
	}
	return nil
}

// breach returns the first object that a check must not use, or why PostgreSQL refuses its SQL; "" if neither applies.
func breach(ctx context.Context, tx *pg.Tx, k job.Check, limit reach.Limit) (why string, err error) {
	text := fmt.Sprintf("SELECT 1 AS one FROM (%s\n) AS q", job.Unended(k.SQL))
	switch {
	case k.Diff != nil && k.Diff.Where == "":
		return "", nil
	case k.Diff != nil:
		text = fmt.Sprintf("SELECT true AS one FROM candidate WHERE (%s\n)", k.Diff.Where)
	}
	err = pg.Probe(ctx, tx, func(tx pgx.Tx) error {
		found, err := reach.Breaches(ctx, tx, "pg_temp.kappactl_reach", text, limit)
		if len(found) > 0 {
			why = found[0].Error()
		}
		return err
	})
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Message, nil
	}
	return why, err
}
