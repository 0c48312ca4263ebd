package serving

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Config bounds a Store. Zero fields mean the defaults.
type Config struct {
	// DropLockTimeout is how long a drop waits for readers of the table; default 2 s.
	DropLockTimeout time.Duration
}

// Store is the DDL of version tables and serving views. It keeps no state and is safe for concurrent use.
type Store struct {
	config Config
}

// New makes a Store.
func New(c Config) *Store {
	if c.DropLockTimeout == 0 {
		c.DropLockTimeout = 2 * time.Second
	}
	return &Store{config: c}
}

// queryer runs the statements that only read: a pg.DB, or the pgx transaction below it where a user's SQL must stay as
// it is.
type queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// selectRights says who we are and what we may do in a schema.
const selectRights = `SELECT current_user AS role, n.oid IS NOT NULL AS present,
	coalesce(has_schema_privilege(n.oid, 'CREATE'), false) AS may_create
	FROM (SELECT) one LEFT JOIN pg_namespace n ON n.nspname = @schema`

// selectAuthor is the role that deployed a version.
const selectAuthor = `SELECT session_role FROM kappactl.version WHERE job = @job AND number = @number`

// selectTable finds the relation at a version table's name.
const selectTable = `SELECT c.relkind::text AS kind, coalesce(obj_description(c.oid, 'pg_class'), '') AS comment,
	ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) AS columns
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = @schema AND c.relname = @name`

// selectIndex finds the relation at an index's name.
const selectIndex = `SELECT i.indexrelid IS NOT NULL AS is_index, coalesce(t.relname = @table AND t.relnamespace = n.oid, false) AS on_table,
	coalesce(i.indisunique AND i.indnullsnotdistinct AND i.indpred IS NULL, false) AS is_unique,
	coalesce(pg_get_expr(i.indexprs, i.indrelid) = 'true', false) AS constant,
	coalesce(i.indisvalid AND i.indisready, false) AS is_valid,
	ARRAY(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(num, pos)
		JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num ORDER BY k.pos) AS columns
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	LEFT JOIN pg_index i ON i.indexrelid = c.oid
	LEFT JOIN pg_class t ON t.oid = i.indrelid
	WHERE n.nspname = @schema AND c.relname = @name`

// selectMoreIndexes lists the indexes on a version table that may be of serve.indexes, with their columns.
const selectMoreIndexes = `SELECT c.relname::text AS name, i.indisvalid AND i.indisready AS is_valid,
	ARRAY(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(num, pos)
		JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num ORDER BY k.pos) AS columns
	FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
	WHERE n.nspname = @schema AND t.relname = @table AND NOT i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL ORDER BY 1`

// selectOwn lists what has the names of a version's tables, and of its generations that are not partitions.
const selectOwn = `SELECT c.relname::text AS name, coalesce(obj_description(c.oid, 'pg_class'), '') AS comment
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = @schema AND (c.relname = ANY (@tables::text[])
		OR c.relkind = 'r' AND NOT c.relispartition AND @member <> '' AND c.relname ~ @member) ORDER BY 1`

// selectKnown is the comment of a function without arguments.
const selectKnown = `SELECT coalesce(obj_description(p.oid, 'pg_proc'), '')
	FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = @schema AND p.proname = @name AND p.pronargs = 0`

// selectMembers lists the partitions of a batch table. Their names end with the generation.
const selectMembers = `SELECT substr(c.relname::text, @prefix)::integer AS generation, i.inhdetachpending AS pending
	FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace n ON n.oid = p.relnamespace
	WHERE n.nspname = @schema AND p.relname = @batch`

// selectDependants lists what reads tables through pg_depend: rules belong to the view that they make, everything else
// speaks for itself, but constraints of the tables, and what kappactl makes for an experiment. Dependencies on the
// table's row type count as well.
const selectDependants = `WITH target AS (
		SELECT c.oid, c.reltype, t.typarray FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_type t ON t.oid = c.reltype
		WHERE n.nspname = @schema AND (c.relname = ANY (@tables::text[]) OR @member <> '' AND c.relname ~ @member)
	), direct AS (
		SELECT d.classid, d.objid, d.objsubid FROM pg_depend d, target
		WHERE d.deptype = 'n' AND ((d.refclassid = 'pg_class'::regclass AND d.refobjid = target.oid)
			OR (d.refclassid = 'pg_type'::regclass AND d.refobjid IN (target.reltype, target.typarray)))
	)
	SELECT DISTINCT what FROM (
		SELECT pg_describe_object('pg_class'::regclass, v.oid, 0) AS what
		FROM direct d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
		JOIN pg_class v ON v.oid = r.ev_class JOIN pg_namespace n ON n.oid = v.relnamespace
		WHERE NOT (n.nspname = @schema AND v.relname IN (@view::text, @view::text || '__arms')) AND v.oid NOT IN (SELECT oid FROM target)
		UNION ALL
		SELECT pg_describe_object(d.classid, d.objid, d.objsubid) FROM direct d WHERE d.classid <> 'pg_rewrite'::regclass
			AND NOT EXISTS (SELECT FROM pg_constraint k WHERE d.classid = 'pg_constraint'::regclass AND k.oid = d.objid AND k.conrelid IN (SELECT oid FROM target))
			AND NOT EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE d.classid = 'pg_proc'::regclass AND p.oid = d.objid
				AND n.nspname = @schema AND p.proname IN (SELECT name || '_for' FROM unnest(@tables::text[]) AS name))
	) s ORDER BY what`

// selectTaken finds the relation, or the type without a relation, at a name.
const selectTaken = `SELECT CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
		WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' WHEN 'S' THEN 'sequence' WHEN 'i' THEN 'index'
		WHEN 'I' THEN 'index' WHEN 'c' THEN 'type' ELSE 'relation' END
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = @schema AND c.relname = @name
	UNION ALL
	SELECT 'type' FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
	WHERE n.nspname = @schema AND t.typname = @name AND t.typrelid = 0
	LIMIT 1`

// selectContract is the contract that a job's readers have.
const selectContract = `SELECT coalesce(contract::text, '') FROM kappactl.job WHERE name = @job`

// selectView reads the serving view: options, owner and comment, and what of the job's tables it reads.
const selectView = `SELECT c.oid::bigint AS oid, c.relkind::text AS kind, coalesce(c.reloptions, '{}') AS options,
	pg_get_userbyid(c.relowner)::text AS owner, pg_has_role(c.relowner, 'USAGE') AS may_replace,
	coalesce(obj_description(c.oid, 'pg_class'), '') AS comment,
	EXISTS (SELECT FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
		AND d.refclassid = 'pg_class'::regclass
		JOIN pg_class t ON t.oid = d.refobjid AND t.relnamespace = c.relnamespace
		WHERE r.ev_class = c.oid AND (t.relname ~ ('^' || @job || '__v[0-9]+$') OR t.relname = @name::text || '__arms')) AS reads_job
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = @schema AND c.relname = @name::text`

// selectViewColumns are the columns of a view in order.
const selectViewColumns = `SELECT a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS type,
	coalesce(quote_ident(cn.nspname) || '.' || quote_ident(co.collname), '') AS collation
	FROM pg_attribute a LEFT JOIN pg_collation co ON co.oid = a.attcollation LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace
	WHERE a.attrelid = @oid::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`

// selectGrants are the rights that others than the owner have on a view and on its columns. An empty role is PUBLIC.
const selectGrants = `SELECT g.privilege_type AS privilege, CASE WHEN g.grantee = 0 THEN '' ELSE pg_get_userbyid(g.grantee)::text END AS role,
	g.is_grantable AS grantable, g.column_name AS on_column
	FROM (
		SELECT x.*, ''::text AS column_name, c.relowner FROM pg_class c, aclexplode(c.relacl) x WHERE c.oid = @oid::oid
		UNION ALL
		SELECT x.*, a.attname::text, c.relowner FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped, aclexplode(a.attacl) x
		WHERE c.oid = @oid::oid
	) g WHERE g.grantee <> g.relowner ORDER BY on_column, role, privilege`

// selectTypes prints types as the catalogue does and says which of them have a collation.
const selectTypes = `SELECT format_type(f.oid, f.typmod) AS type, t.typcollation <> 0 AS collatable
	FROM unnest(@oids::bigint[], @typmods::integer[]) WITH ORDINALITY AS g(oid8, typmod, n)
	CROSS JOIN LATERAL (SELECT g.oid8::oid AS oid, g.typmod) f
	JOIN pg_type t ON t.oid = f.oid ORDER BY g.n`

// selectCollationNames qualifies collation names as pg_collation_for prints them.
const selectCollationNames = `SELECT coalesce(quote_ident(n.nspname) || '.' || quote_ident(c.collname), '')
	FROM unnest(@names::text[]) WITH ORDINALITY AS g(name, n)
	LEFT JOIN pg_collation c ON c.oid = to_regcollation(g.name)
	LEFT JOIN pg_namespace n ON n.oid = c.collnamespace ORDER BY g.n`

// selectTarget is the owner of a version table, and its row level security.
const selectTarget = `SELECT pg_get_userbyid(c.relowner)::text AS owner, c.relrowsecurity AS guarded FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = @schema AND c.relname = @table`
