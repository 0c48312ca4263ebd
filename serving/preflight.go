package serving

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Preflight refuses, before anything is replayed, what would stop the build or the flip of a new version: a schema or a
// role that does not exist, or a name that the version's table cannot have.
func (s *Store) Preflight(ctx context.Context, db pg.DB, view job.ViewName, to job.Ref, l job.Layout,
	grants map[string][]string,
) error {
	v := job.Version{Ref: to, Schema: view.Schema, Layout: l}
	spec, err := specGrants(grants)
	if err != nil {
		return err
	}
	if err := errors.Join(checkNames("view", view.Schema, view.Name), checkLayout(v)); err != nil {
		return err
	}
	var schema bool
	if err := db.QueryRow(ctx, `SELECT to_regnamespace(quote_ident(@schema)) IS NOT NULL`,
		pgx.NamedArgs{"schema": view.Schema}).Scan(&schema); err != nil {
		return fmt.Errorf("look for schema %s: %w", view.Schema, err)
	}
	if !schema {
		return &job.Refusal{
			Code: job.ExitUsage, Cause: fmt.Sprintf("serve.view: schema %s does not exist", pg.Ident(view.Schema)),
			Next: fmt.Sprintf("CREATE SCHEMA %s, or choose another serve.view", pg.Ident(view.Schema)),
		}
	}
	if err := rolesExist(ctx, db, spec); err != nil {
		return err
	}
	_, err = ownTables(ctx, db, v)
	return err
}

// rolesExist refuses grants to roles that the server does not have.
func rolesExist(ctx context.Context, db pg.DB, grants []Grant) error {
	names := []string{}
	for _, g := range grants {
		if g.Role != "" {
			names = append(names, g.Role)
		}
	}
	rows, err := db.Query(ctx,
		`SELECT n FROM unnest(@names::text[]) AS n WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = n) ORDER BY 1`,
		pgx.NamedArgs{"names": names})
	if err != nil {
		return fmt.Errorf("look for the roles of serve.grant: %w", err)
	}
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look for the roles of serve.grant: %w", err)
	}
	if len(missing) == 0 {
		return nil
	}
	return &job.Refusal{
		Code: job.ExitUsage, Cause: "serve.grant names roles that do not exist: " + strings.Join(missing, ", "),
		Next: fmt.Sprintf("CREATE ROLE %s, or correct serve.grant", pg.Ident(missing[0])),
	}
}
