package serving

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Fillfactor is that of version tables, for those who estimate their size.
const Fillfactor = fillfactor

// Addition is something that people added to a version's table by hand. A new version does not have it.
type Addition struct {
	Kind string `json:"kind"` // index, grant, policy, trigger, column, constraint, statistics
	What string `json:"what"`
}

// Readers lists the relations and functions that depend on the serving view.
func (*Store) Readers(ctx context.Context, db pg.DB, view job.ViewName) ([]string, error) {
	names, err := namesOf(ctx, db, selectDependants,
		pgx.NamedArgs{"schema": view.Schema, "tables": []string{view.Name}, "member": "", "view": ""})
	if err != nil {
		return nil, fmt.Errorf("dependants of %s: %w", view, err)
	}
	return names, nil
}

// selectAdditions lists what a version's table has that kappactl does not put there. Rights of the view's owner, which
// a switch grants, are not among them.
const selectAdditions = `WITH target AS (
		SELECT c.oid, c.relowner, c.relacl, c.relrowsecurity, c.relnamespace FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = @schema AND c.relname = ANY (@tables::text[])
	)
	SELECT kind, what FROM (
		SELECT 'index' AS kind, pg_get_indexdef(i.indexrelid) AS what FROM pg_index i JOIN target t ON i.indrelid = t.oid
			JOIN pg_class c ON c.oid = i.indexrelid
			WHERE NOT c.relname = ANY (@indexes::text[]) AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.conrelid = t.oid)
		UNION ALL
		SELECT 'constraint', k.conname || ' ' || pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN target t ON k.conrelid = t.oid WHERE k.contype <> 'n'
		UNION ALL
		SELECT 'grant', x.privilege_type || ' to ' || CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(x.grantee)) END
			FROM target t, aclexplode(t.relacl) x WHERE x.grantee <> t.relowner
			AND NOT (x.privilege_type = 'SELECT' AND EXISTS (SELECT FROM pg_class v WHERE v.relnamespace = t.relnamespace AND v.relname = @view AND v.relowner = x.grantee))
		UNION ALL
		SELECT 'grant', x.privilege_type || ' (' || quote_ident(a.attname) || ') to ' || CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(x.grantee)) END
			FROM target t JOIN pg_attribute a ON a.attrelid = t.oid AND NOT a.attisdropped, aclexplode(a.attacl) x WHERE x.grantee <> t.relowner
		UNION ALL
		SELECT 'policy', p.polname::text FROM pg_policy p JOIN target t ON p.polrelid = t.oid
		UNION ALL
		SELECT 'policy', 'row level security is enabled' FROM target t WHERE t.relrowsecurity
		UNION ALL
		SELECT 'trigger', pg_get_triggerdef(g.oid) FROM pg_trigger g JOIN target t ON g.tgrelid = t.oid WHERE NOT g.tgisinternal
		UNION ALL
		SELECT 'column', quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod) FROM pg_attribute a JOIN target t ON a.attrelid = t.oid
			WHERE a.attnum > 0 AND NOT a.attisdropped AND NOT a.attname = ANY (@columns::text[])
		UNION ALL
		SELECT 'statistics', s.stxname::text FROM pg_statistic_ext s JOIN target t ON s.stxrelid = t.oid
	) all_of_it ORDER BY kind, what`

// Additions lists what people added to a version's table, and to its batch table, by hand. Names in it are PostgreSQL's
// own spelling.
func (*Store) Additions(ctx context.Context, db pg.DB, ref job.Ref, view job.ViewName, l job.Layout) ([]Addition,
	error,
) {
	v := job.Version{Ref: ref, Schema: view.Schema, Layout: l}
	columns, _ := l.StagedColumns()
	if l.Lambda {
		columns = append(columns, job.EpochColumn, job.GenerationColumn)
	}
	rows, err := db.Query(ctx, selectAdditions, pgx.NamedArgs{
		"schema": view.Schema, "tables": v.Filled(), "view": view.Name, "columns": columns, "indexes": ownIndexes(ref, l),
	})
	if err != nil {
		return nil, fmt.Errorf("what was added to %s: %w", ref.Table(), err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[Addition])
	if err != nil {
		return nil, fmt.Errorf("what was added to %s: %w", ref.Table(), err)
	}
	return out, nil
}

// ownIndexes are the names of the indexes that kappactl makes.
func ownIndexes(ref job.Ref, l job.Layout) []string {
	names := []string{keyIndex(ref.Table())}
	for _, columns := range l.Indexes {
		names = append(names, moreIndex(ref.Table(), columns))
	}
	return names
}

func namesOf(ctx context.Context, db pg.DB, sql string, args pgx.NamedArgs) ([]string, error) {
	rows, err := db.Query(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
