package serving

// selectAdoptable finds the relation at the view's name, and whether the name that it would get is taken. Kind is empty
// for what is neither a table nor a view.
const selectAdoptable = `SELECT c.oid::bigint AS oid,
	CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
		WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE '' END AS kind,
	pg_get_userbyid(c.relowner)::text AS owner, pg_has_role(c.relowner, 'USAGE') AS mine,
	c.relrowsecurity OR EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid) AS guarded,
	coalesce((SELECT t.relname::text FROM pg_class t WHERE t.relnamespace = c.relnamespace AND t.relname = @table), '') AS taken_name,
	coalesce(obj_description(c.oid, 'pg_class'), '') AS comment
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = @schema AND c.relname = @name`

// selectDependantsOf lists what depends on a relation. Plain views have an oid: they can be rewritten over another
// relation of that name. Constraints of the relation itself are not among them.
const selectDependantsOf = `WITH target AS (
		SELECT c.oid, c.reltype, t.typarray FROM pg_class c JOIN pg_type t ON t.oid = c.reltype WHERE c.oid = @oid::oid
	), direct AS (
		SELECT d.classid, d.objid, d.objsubid FROM pg_depend d, target
		WHERE d.deptype = 'n' AND ((d.refclassid = 'pg_class'::regclass AND d.refobjid = target.oid)
			OR (d.refclassid = 'pg_type'::regclass AND d.refobjid IN (target.reltype, target.typarray)))
	)
	SELECT DISTINCT s.* FROM (
		SELECT CASE v.relkind WHEN 'v' THEN v.oid::bigint END AS oid, pg_describe_object('pg_class'::regclass, v.oid, 0) AS what,
			n.nspname::text AS schema, v.relname::text AS name, pg_get_userbyid(v.relowner)::text AS owner, pg_has_role(v.relowner, 'USAGE') AS mine
		FROM direct d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
		JOIN pg_class v ON v.oid = r.ev_class JOIN pg_namespace n ON n.oid = v.relnamespace WHERE v.oid NOT IN (SELECT oid FROM target)
		UNION ALL
		SELECT NULL, pg_describe_object(d.classid, d.objid, d.objsubid), '', '', '', false FROM direct d
		WHERE d.classid <> 'pg_rewrite'::regclass
			AND NOT EXISTS (SELECT FROM pg_constraint k WHERE d.classid = 'pg_constraint'::regclass AND k.oid = d.objid AND k.conrelid IN (SELECT oid FROM target))
			AND NOT EXISTS (SELECT FROM pg_attrdef f WHERE d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid AND f.adrelid IN (SELECT oid FROM target))
		UNION ALL
		SELECT NULL, 'publication ' || p.pubname, '', '', '', false FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
		WHERE r.prrelid IN (SELECT oid FROM target)
	) s ORDER BY what`

// selectColumnComments are the comments on a relation's columns.
const selectColumnComments = `SELECT a.attname::text AS name, d.description AS comment FROM pg_attribute a
	JOIN pg_description d ON d.classoid = 'pg_class'::regclass AND d.objoid = a.attrelid AND d.objsubid = a.attnum
	WHERE a.attrelid = @oid::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`

// selectDefinition prints a view's definition; under an empty search_path every name in it is qualified.
const selectDefinition = `SELECT pg_get_viewdef(c.oid), coalesce(c.reloptions, '{}') FROM pg_class c WHERE c.oid = @oid::oid`
