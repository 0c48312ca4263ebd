package serving

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
)

// through is who can read rows through a view, and what hides rows from them.
type through struct {
	Readers []string // roles with rights of their own on all that the view reads; "" is PUBLIC
	Guarded []string // tables with row level security that holds for the view's readers, qualified
}

// selectThrough finds the relations and columns for which PostgreSQL checks the rights of one role when a view is read:
// those that the view names and, where that is a view with security_invoker, those behind it. Readers are the roles
// with a grant on any of them that have all the rights.
const selectThrough = `WITH RECURSIVE reads AS (
		SELECT d.refobjid AS oid, d.refobjsubid AS number
		FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
		WHERE r.ev_class = @oid::oid AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> r.ev_class
		UNION
		SELECT d.refobjid, d.refobjsubid
		FROM reads JOIN pg_class v ON v.oid = reads.oid AND v.relkind = 'v' JOIN pg_rewrite r ON r.ev_class = v.oid
		JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
		WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid <> r.ev_class
			AND EXISTS (SELECT FROM pg_options_to_table(v.reloptions)
				WHERE option_name = 'security_invoker' AND option_value::boolean)
	), relation AS (
		SELECT c.* FROM pg_class c WHERE c.oid = @oid::oid OR c.oid IN (SELECT oid FROM reads)
	), grantee AS (
		SELECT relowner AS oid FROM relation
		UNION SELECT x.grantee FROM relation c, aclexplode(c.relacl) x
		UNION SELECT x.grantee FROM pg_attribute a, aclexplode(a.attacl) x WHERE a.attrelid IN (SELECT oid FROM relation)
	), role AS (
		SELECT CASE WHEN oid = 0 THEN '' ELSE pg_get_userbyid(oid)::text END AS name,
			CASE WHEN oid = 0 THEN 'public' ELSE pg_get_userbyid(oid) END AS checked FROM grantee
	)
	SELECT ARRAY(SELECT r.name FROM role r WHERE has_any_column_privilege(r.checked, @oid::oid, 'SELECT') AND NOT EXISTS (
			SELECT FROM reads WHERE NOT CASE WHEN number = 0 THEN has_any_column_privilege(r.checked, oid, 'SELECT')
				ELSE has_column_privilege(r.checked, oid, number::smallint, 'SELECT') END) ORDER BY 1) AS readers,
		ARRAY(SELECT oid::regclass::text FROM relation WHERE relrowsecurity ORDER BY 1) AS guarded`

func readThrough(ctx context.Context, tx queryer, oid int64) (through, error) {
	rows, err := tx.Query(ctx, selectThrough, pgx.NamedArgs{"oid": oid})
	if err != nil {
		return through{}, fmt.Errorf("read who reads through the view: %w", err)
	}
	out, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[through])
	if err != nil {
		return through{}, fmt.Errorf("read who reads through the view: %w", err)
	}
	return out, nil
}

// keepsRowsHidden refuses a flip from tables with row level security to one without: readers would see the rows that it
// hides. The rights of a view's owner, who is the tables' too, pass row level security: it holds where readers' rights
// are checked.
func (c *Contract) keepsRowsHidden(ctx context.Context, tx queryer, change job.ViewChange, before through) error {
	if !c.invoker() || len(before.Guarded) == 0 {
		return nil
	}
	for _, name := range change.Version().Filled() {
		facts, err := readTarget(ctx, tx, change.View.Schema, name)
		if err != nil {
			return err
		}
		if facts.Guarded {
			continue
		}
		table := pgx.Identifier{change.View.Schema, name}.Sanitize()
		return &job.Refusal{
			Code: job.ExitConflict,
			Cause: fmt.Sprintf("row level security of %s hides rows from readers of %s, and %s has none",
				strings.Join(before.Guarded, ", "), change.View, table),
			Next: fmt.Sprintf("ALTER TABLE %s ENABLE ROW LEVEL SECURITY, with the same policies", table),
		}
	}
	return nil
}

// opened are the roles that read the version's table from now on: of those that the view needs, the ones that could
// read through it before, and the ones that the job file names for the first time.
func (c *Contract) opened(before []string, named []Grant) []string {
	if !c.invoker() {
		return slices.DeleteFunc([]string{c.Owner}, func(role string) bool { return !slices.Contains(before, role) })
	}
	out := slices.Clone(before)
	for _, g := range named {
		if g.Privilege == selectPrivilege {
			out = append(out, g.Role)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// open opens the version's tables to those roles and keeps in the contract who they are.
func (c *Contract) open(ctx context.Context, tx pgx.Tx, change job.ViewChange, before []string, named []Grant) error {
	readers := c.opened(before, named)
	if c.invoker() {
		c.Readers = readers
	}
	return openTables(ctx, tx, change, readers)
}
