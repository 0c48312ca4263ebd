package checks

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// queryFunc runs a query that contains SQL of a job file. columns are its result columns, as after AS in a FROM clause.
type queryFunc func(ctx context.Context, query, columns string) (pgx.Rows, error)

// direct runs queries with the rights of the session.
func direct(tx pgx.Tx) queryFunc {
	return func(ctx context.Context, query, _ string) (pgx.Rows, error) { return tx.Query(ctx, query) }
}

// createFence creates the function in which checks run. A role that was only SET can be changed back, by set_config in
// a query or in a function that it calls. Inside a function with its owner's rights PostgreSQL refuses that.
const createFence = `CREATE FUNCTION pg_temp.kappactl_ask(query text) RETURNS SETOF record LANGUAGE plpgsql SECURITY
	DEFINER
	AS $$ BEGIN RETURN QUERY EXECUTE query; END $$`

// fenced runs queries inside the fence.
func fenced(tx pgx.Tx) queryFunc {
	return func(ctx context.Context, query, columns string) (pgx.Rows, error) {
		return tx.Query(ctx, fmt.Sprintf("SELECT * FROM pg_temp.kappactl_ask($1) AS asked(%s)", columns), query)
	}
}

// fence creates the fence with the rights of the checks role. It returns a reason.Error if the role lacks a right.
func (r *Run) fence(ctx context.Context, tx *pg.Tx) error {
	if err := takeRole(ctx, tx.Raw(), r.Role); err != nil {
		return err
	}
	if _, err := tx.Raw().Exec(ctx, createFence); err != nil {
		if pg.Code(err) == pgerrcode.InsufficientPrivilege {
			return r.missingRight(ctx, err)
		}
		return fmt.Errorf(createFenceFailed, err)
	}
	if r.Role == "" {
		return nil
	}
	if _, err := tx.Raw().Exec(ctx, "RESET ROLE"); err != nil {
		return fmt.Errorf(createFenceFailed, err)
	}
	return nil
}

const createFenceFailed = "create the function that checks run in: %w"

// fenceRights reads the rights that a role needs for the fence; an empty role is the session's own.
const fenceRights = `SELECT r.rolname::text AS role, current_database()::text AS database,
	has_database_privilege(r.oid, current_database(), 'TEMPORARY') AS temporary,
	has_language_privilege(r.oid, 'plpgsql', 'USAGE') AS language
	FROM pg_roles r WHERE r.rolname = coalesce(nullif(@role, ''), current_user)`

// missingRight names the right that the checks role lacks, and the statement that grants it. PostgreSQL's message is in
// the server's language and its code is the same for both rights. The rights are therefore read outside the
// transaction, which the error has ended.
func (r *Run) missingRight(ctx context.Context, denied error) error {
	var may struct {
		Role, Database      string
		Temporary, Language bool
	}
	err := r.Pool.QueryRow(ctx, fenceRights, pgx.NamedArgs{"role": r.Role}).Scan(
		&may.Role, &may.Database, &may.Temporary, &may.Language)
	switch {
	case err != nil:
		return fmt.Errorf(createFenceFailed, errors.Join(denied, err))
	case !may.Temporary:
		return noAnswer{reason.RoleNeedsTemporary(pg.Ident(may.Role), pg.Ident(may.Database))}
	case !may.Language:
		return noAnswer{reason.RoleNeedsLanguage(pg.Ident(may.Role))}
	}
	return fmt.Errorf(createFenceFailed, denied)
}

// takeRole switches to the checks role until the transaction or the savepoint ends.
func takeRole(ctx context.Context, tx pgx.Tx, role string) error {
	if role == "" {
		return nil
	}
	if _, err := tx.Exec(ctx, "SET LOCAL ROLE "+pg.Ident(role)); err != nil {
		return fmt.Errorf("take the role of checks: %w", err)
	}
	return nil
}

// leaveNothing releases session state that survives a rollback.
func leaveNothing(ctx context.Context, tx *pg.Tx) error {
	if _, err := tx.Raw().Exec(ctx, "SELECT pg_advisory_unlock_all()"); err != nil {
		return fmt.Errorf("release the locks that checks took: %w", err)
	}
	return nil
}
