package pg

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// selectLacking lists the rights of the commands that the role lacks, as statements with {role} and {control} for the
// role and the control schema.
const selectLacking = `SELECT current_user::text, ARRAY(
	SELECT 'GRANT USAGE ON SCHEMA {control} TO {role}' FROM pg_namespace
	WHERE nspname = @schema AND NOT has_schema_privilege(oid, 'USAGE')
	UNION ALL
	SELECT 'GRANT SELECT ON ALL TABLES IN SCHEMA {control} TO {role}'
	FROM (SELECT) AS one WHERE EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = @schema AND c.relkind = 'r' AND NOT has_table_privilege(c.oid, 'SELECT'))
	UNION ALL
	SELECT CASE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = 'kappactl_cli') THEN 'GRANT kappactl_cli TO {role}'
		ELSE 'the rights of kappactl_cli in docs/rights.sql, for {role}' END || ' (or use such a role)'
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = @schema AND c.relname = 'request' AND NOT has_any_column_privilege(c.oid, 'INSERT')
	UNION ALL
	SELECT format('GRANT SELECT ON %I.%I TO {role}', n.nspname, c.relname)
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relname ~ '^[a-z][a-z0-9_]*__v[0-9]+$'
		AND NOT has_table_privilege(c.oid, 'SELECT')
		AND (obj_description(c.oid, 'pg_class') LIKE 'kappactl: %' OR c.relname LIKE '%\_\_v0')
	UNION ALL
	SELECT format('GRANT TEMPORARY ON DATABASE %I TO {role}', current_database())
	FROM (SELECT) AS one WHERE NOT has_database_privilege(current_database(), 'TEMPORARY'))`

// LackingRights returns the pool's role, quoted, and the statements that grant what it lacks to run the commands.
func LackingRights(ctx context.Context, pool *Pool) (role string, grants []string, err error) {
	err = pool.QueryRow(ctx, selectLacking, pgx.NamedArgs{"schema": pool.Schema()}).Scan(&role, &grants)
	if err != nil {
		return "", nil, err
	}
	fill := strings.NewReplacer("{role}", Ident(role), "{control}", Ident(pool.Schema()))
	for i := range grants {
		grants[i] = fill.Replace(grants[i])
	}
	return Ident(role), grants, nil
}
