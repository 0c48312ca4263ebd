package reach

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/pg"
)

// Limit defines what a SQL text may use. The zero value allows columns of the text itself and pure functions.
type Limit struct {
	Relations []string // quoted names that it may read
	Author    string   // role that wrote the SQL; empty: the session's own
	Agent     string   // role that runs it; empty: the session's own
	Check     bool     // it is the SQL of a check
}

// Breach is an object that a SQL text must not use.
type Breach struct {
	Kind Kind
	Name string // as people write it: public.payroll, pg_read_file(text)
	Word string // its name without schema and arguments
	Why  string
}

// Error describes the breach in a sentence about the SQL text.
func (b Breach) Error() string {
	verb := map[Kind]string{Relation: "reads ", Function: "calls ", Type: "uses type ", Other: "uses "}[b.Kind]
	return "it " + verb + b.Name + ", " + b.Why
}

// Breaches returns the objects that a SELECT uses and must not use, in a stable order. view is the quoted name of the
// view that it creates; the caller rolls the transaction back. Errors of PostgreSQL about the text are returned
// unchanged.
func Breaches(ctx context.Context, tx pgx.Tx, view, text string, limit Limit) ([]Breach, error) {
	uses, err := list(ctx, tx, view, text, limit)
	if err != nil {
		return nil, err
	}
	var out []Breach
	for _, u := range uses {
		if why := limit.refuses(u); why != "" {
			out = append(out, Breach{Kind: u.Kind, Name: u.Name, Word: u.Word, Why: why})
		}
	}
	return out, nil
}

// Placed is a breach with the path of its text in the job file: serve.where, serve.columns.NAME.
type Placed struct {
	Path string
	Breach
}

// Equal reports whether the author has all rights of the agent, so that the SQL of a check needs no limit.
func (l Limit) Equal(ctx context.Context, tx pgx.Tx) (bool, error) {
	var equal bool
	err := tx.QueryRow(ctx, `SELECT coalesce((SELECT pg_has_role(a.oid,
			coalesce((SELECT oid FROM pg_roles WHERE rolname = @agent::text), current_user::regrole::oid), 'MEMBER')
		FROM pg_roles a WHERE a.rolname = coalesce(nullif(@author::text, ''), current_user)), false)`,
		pgx.NamedArgs{"author": l.Author, "agent": l.Agent}).Scan(&equal)
	if err != nil {
		return false, fmt.Errorf("compare the rights of %q with those of the agent: %w", l.Author, err)
	}
	return equal, nil
}

// Without returns the breaches that others does not contain.
func Without(breaches, others []Breach) []Breach {
	known := map[Breach]bool{}
	for _, o := range others {
		known[o] = true
	}
	var out []Breach
	for _, b := range breaches {
		if !known[b] {
			out = append(out, b)
		}
	}
	return out
}

// list creates the view and reads what it uses.
func list(ctx context.Context, tx pgx.Tx, view, text string, limit Limit) ([]use, error) {
	if err := pg.One(ctx, tx, fmt.Sprintf("CREATE VIEW %s AS\n%s", view, text)); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, selectUses, pgx.NamedArgs{
		"view": view, "relations": limit.Relations, "author": limit.Author, "agent": limit.Agent,
	})
	if err != nil {
		return nil, fmt.Errorf("read what the SQL uses: %w", err)
	}
	uses, err := pgx.CollectRows(rows, pgx.RowToStructByName[use])
	if err != nil {
		return nil, fmt.Errorf("read what the SQL uses: %w", err)
	}
	return uses, nil
}

// selectUses lists what the view @view uses. pg_depend has no entries for built-in objects such as pg_read_file. These
// are found in the stored query, where names and constants cannot contain ":funcid 123", because their white space is
// escaped.
//
// authorised: the author may use the object. trusted: its owner has all rights of the agent. equal: the author has
// them.
const selectUses = `
WITH roles AS (
	SELECT CASE @author::text WHEN '' THEN current_user::regrole::oid
			ELSE coalesce((SELECT oid FROM pg_roles WHERE rolname = @author::text), 0) END AS author,
		coalesce((SELECT oid FROM pg_roles WHERE rolname = @agent::text), current_user::regrole::oid) AS agent
), rule AS (
	SELECT oid, ev_class, ev_action::text AS tree FROM pg_rewrite WHERE ev_class = @view::text::regclass
), found AS (
	SELECT d.refclassid AS class, d.refobjid AS oid
	FROM rule r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
	UNION
	SELECT CASE m[1] WHEN 'relid' THEN 'pg_class'::regclass ELSE 'pg_proc'::regclass END, m[2]::oid
	FROM rule r, regexp_matches(r.tree, ':(relid|funcid|aggfnoid|winfnoid|opfuncid) (\d+)', 'g') AS m WHERE m[2] <> '0'
), used AS (
	SELECT class, oid FROM found WHERE class <> 'pg_operator'::regclass
	UNION
	SELECT 'pg_proc'::regclass, o.oprcode
	FROM found f JOIN pg_operator o ON f.class = 'pg_operator'::regclass AND o.oid = f.oid
)
SELECT 'relation' AS kind, quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS name, c.relname::text AS word,
	false AS builtin, '' AS volatile, false AS definer, c.relkind::text AS of,
	has_table_privilege(r.author, c.oid, 'SELECT') AND has_schema_privilege(r.author, n.oid, 'USAGE') AS authorised,
	c.relkind IN ('r', 'p', 'm') AND NOT c.relrowsecurity OR c.relkind = 'v' AND pg_has_role(c.relowner, r.agent, 'MEMBER')
		AND NOT EXISTS (SELECT FROM unnest(c.reloptions) AS o WHERE o LIKE 'security_invoker=%') AS trusted,
	pg_has_role(r.author, r.agent, 'MEMBER') AS equal
FROM used u JOIN pg_class c ON u.class = 'pg_class'::regclass AND c.oid = u.oid
	JOIN pg_namespace n ON n.oid = c.relnamespace, roles r
WHERE c.oid NOT IN (SELECT ev_class FROM rule)
	AND NOT EXISTS (SELECT FROM unnest(@relations::text[]) AS own WHERE own::regclass = c.oid)
UNION ALL
SELECT 'function', CASE WHEN n.nspname = 'pg_catalog' THEN '' ELSE quote_ident(n.nspname) || '.' END
		|| quote_ident(p.proname) || '(' || oidvectortypes(p.proargtypes) || ')',
	p.proname::text, n.nspname = 'pg_catalog', p.provolatile::text, p.prosecdef, p.prokind::text,
	has_function_privilege(r.author, p.oid, 'EXECUTE') AND has_schema_privilege(r.author, n.oid, 'USAGE'),
	pg_has_role(p.proowner, r.agent, 'MEMBER'), pg_has_role(r.author, r.agent, 'MEMBER')
FROM used u JOIN pg_proc p ON u.class = 'pg_proc'::regclass AND p.oid = u.oid
	JOIN pg_namespace n ON n.oid = p.pronamespace, roles r
UNION ALL
SELECT 'type', format_type(t.oid, NULL), t.typname::text, n.nspname = 'pg_catalog', '', false, e.typtype::text,
	has_type_privilege(r.author, e.oid, 'USAGE') AND has_schema_privilege(r.author, n.oid, 'USAGE'),
	pg_has_role(e.typowner, r.agent, 'MEMBER'), pg_has_role(r.author, r.agent, 'MEMBER')
FROM used u JOIN pg_type t ON u.class = 'pg_type'::regclass AND t.oid = u.oid
	JOIN pg_type e ON e.oid = CASE WHEN t.typcategory = 'A' THEN t.typelem ELSE t.oid END
	JOIN pg_namespace n ON n.oid = e.typnamespace, roles r
UNION ALL
SELECT 'other', pg_describe_object(u.class, u.oid, 0), '', false, '', false,
	(SELECT relname FROM pg_class WHERE oid = u.class)::text, false, false, pg_has_role(r.author, r.agent, 'MEMBER')
FROM used u, roles r WHERE u.class NOT IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass)
ORDER BY 1, 2`
