package reprocess

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// asking runs a query that holds SQL of a job file. columns are those that it returns, as after AS in a FROM.
type asking func(ctx context.Context, query, columns string) (pgx.Rows, error)

// plainly asks with the rights of whoever runs the command.
func plainly(tx pgx.Tx) asking {
	return func(ctx context.Context, query, _ string) (pgx.Rows, error) { return tx.Query(ctx, query) }
}

// createFence makes the function that checks are run in. A role that was only SET can be put off again, by set_config in a query or by
// what the query calls; in a function with the rights of its owner PostgreSQL refuses that to everything that runs within.
const createFence = `CREATE FUNCTION pg_temp.kappactl_ask(query text) RETURNS SETOF record LANGUAGE plpgsql SECURITY DEFINER
	AS $$ BEGIN RETURN QUERY EXECUTE query; END $$`

// fenced asks inside the fence.
func fenced(tx pgx.Tx) asking {
	return func(ctx context.Context, query, columns string) (pgx.Rows, error) {
		return tx.Query(ctx, fmt.Sprintf("SELECT * FROM pg_temp.kappactl_ask($1) AS asked(%s)", columns), query)
	}
}

// fence makes the fence with the rights of the role of checks.
func (r *checkRun) fence(ctx context.Context, tx *pg.Tx) error {
	role := r.c.config.ChecksRole
	if err := takeRole(ctx, tx.Raw(), role); err != nil {
		return err
	}
	if _, err := tx.Raw().Exec(ctx, createFence); err != nil {
		if pg.Code(err) == "42501" {
			return r.c.lacking(ctx, role, err)
		}
		return wrap(err, makeFence)
	}
	if role == "" {
		return nil
	}
	_, err := tx.Raw().Exec(ctx, "RESET ROLE")
	return wrap(err, makeFence)
}

const makeFence = "make the function that checks run in"

// fenceRights are the rights that a role needs for the fence; an empty role is whoever asks.
const fenceRights = `SELECT r.rolname::text AS role, current_database()::text AS database,
	has_database_privilege(r.oid, current_database(), 'TEMPORARY') AS temporary, has_language_privilege(r.oid, 'plpgsql', 'USAGE') AS language
	FROM pg_roles r WHERE r.rolname = coalesce(nullif(@role, ''), current_user)`

// lacking names the right that a role lacks to make the fence, and the statement that gives it. What was denied says so in the
// language of the server and ends the transaction, so the rights are asked for beside it.
func (c *Controller) lacking(ctx context.Context, role string, denied error) error {
	var may struct {
		Role, Database      string
		Temporary, Language bool
	}
	err := c.Pool.QueryRow(ctx, fenceRights, pgx.NamedArgs{"role": role}).Scan(&may.Role, &may.Database, &may.Temporary, &may.Language)
	switch {
	case err != nil:
		return wrap(errors.Join(denied, err), makeFence)
	case !may.Temporary:
		return fmt.Errorf("role %s runs checks and may make no temporary objects: GRANT TEMPORARY ON DATABASE %s TO %[1]s", pg.Ident(may.Role), pg.Ident(may.Database))
	case !may.Language:
		return fmt.Errorf("role %s runs checks and may not use the language of the function that they run in: GRANT USAGE ON LANGUAGE plpgsql TO %[1]s", pg.Ident(may.Role))
	}
	return wrap(denied, makeFence)
}

// takeRole goes on as the role of checks until the transaction, or the savepoint, ends.
func takeRole(ctx context.Context, tx pgx.Tx, role string) error {
	if role == "" {
		return nil
	}
	if _, err := tx.Exec(ctx, "SET LOCAL ROLE "+pg.Ident(role)); err != nil {
		return fmt.Errorf("take the role of checks: %w", err)
	}
	return nil
}

// countedAnswer is a query for how many rows a check's query returns, and the boolean of one: PostgreSQL keeps none of them, however many there
// are, and takes a domain over boolean as a boolean. text is a query that PostgreSQL has parsed, so it cannot end the parentheses.
func countedAnswer(ctx context.Context, tx pgx.Tx, text string) (string, error) {
	counted := fmt.Sprintf("SELECT count(*), bool_and(q.answer) FROM (%s\n) AS q (answer)", job.Unended(text))
	_, err := fieldsOf(ctx, tx, counted)
	if pg.Code(err) == "0A000" { // what is refused only in parentheses
		return "", errors.New("it writes, and checks only read: a WITH of it inserts, updates, deletes or merges")
	}
	return counted, err
}

// leaveNothing gives back what a rolled back transaction would leave behind on its connection.
func leaveNothing(ctx context.Context, tx *pg.Tx) error {
	_, err := tx.Raw().Exec(ctx, "SELECT pg_advisory_unlock_all()")
	return wrap(err, "release the locks that checks took")
}

// fieldsOf are the columns of a query, which is parsed and not run.
func fieldsOf(ctx context.Context, tx pgx.Tx, query string) ([]pgconn.FieldDescription, error) {
	described, err := tx.Conn().Prepare(ctx, "", query)
	if err != nil {
		return nil, err
	}
	return described.Fields, nil
}
