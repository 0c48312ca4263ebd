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

// maxGeneration is up to which generation names are known to fit.
const maxGeneration = 999_999

// layers is the DDL of what a version of mode lambda has beside its table: the batch table with generation 0, the
// pointer, and the function that bounds it. The batch table has no index, key or trigger, which ATTACH would build on
// each generation. The pointer always has its one row: without it the view would be empty.
func layers(v job.Version) []string {
	batch, pointer := qualified(v.Schema, v.Batch()), qualified(v.Schema, v.Pointer())
	steps := []string{
		fmt.Sprintf("CREATE TABLE %s (%s) PARTITION BY LIST (%s)", batch,
			strings.Join(append(storedColumns(v.Layout), ident(job.GenerationColumn)+" integer NOT NULL"), ", "),
			ident(job.GenerationColumn)),
		comment("TABLE", batch, "kappactl: batch generations"+writtenFor(v.Ref)),
		fmt.Sprintf("CREATE TABLE %s (one boolean PRIMARY KEY DEFAULT true CHECK (one), generation integer NOT NULL)",
			pointer),
		comment("TABLE", pointer, "kappactl: number of the live generation"+writtenFor(v.Ref)),
		fmt.Sprintf("INSERT INTO %s (generation) VALUES (0)", pointer),
		fmt.Sprintf("CREATE RULE one_row AS ON DELETE TO %s DO INSTEAD NOTHING", pointer),
		fmt.Sprintf("REVOKE DELETE, TRUNCATE ON %s FROM CURRENT_USER", pointer),
	}
	steps = append(append(steps, member(v, 0)...), attach(v, 0), "CREATE "+knownBody(v, 0), comment("FUNCTION", known(v),
		"kappactl: newest generation in the batch table"+writtenFor(v.Ref)))
	return append(steps, "GRANT EXECUTE ON FUNCTION "+known(v)+" TO PUBLIC") // default privileges may not give it
}

// known is the call of the function that returns the newest generation in the batch table.
func known(v job.Version) string { return qualified(v.Schema, v.Known()) + "()" }

// knownBody defines it. STABLE lets the planner put the body in its place, so that the number is part of a plan.
func knownBody(v job.Version, generation int) string {
	return fmt.Sprintf("FUNCTION %s RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT %d'", known(v),
		generation)
}

// foreignLayer refuses what has the name of one of the version's tables while the version has none.
func foreignLayer(ctx context.Context, db pg.DB, v job.Version) error {
	if !v.Layout.Lambda {
		return nil
	}
	for _, name := range append(v.Tables(), v.Member(0)) {
		t, err := readTable(ctx, db, v.Schema, name)
		if err != nil {
			return err
		}
		if t != nil {
			return foreign(v, name)
		}
	}
	_, there, err := readKnown(ctx, db, v)
	if err == nil && there {
		err = foreign(v, v.Known())
	}
	return err
}

// readKnown returns the comment of the function of that name, if it is there.
func readKnown(ctx context.Context, db queryer, v job.Version) (comment string, there bool, err error) {
	rows, err := db.Query(ctx, selectKnown, pgx.NamedArgs{"schema": v.Schema, "name": v.Known()})
	if err != nil {
		return "", false, fmt.Errorf("look for function %s: %w", known(v), err)
	}
	comment, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
	if errors.Is(err, pgx.ErrNoRows) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("look for function %s: %w", known(v), err)
	}
	return comment, true, nil
}

// raise makes statements that are planned from now on show generations up to the given one, which is in the batch
// table. A lock keeps an agent that was overtaken from lowering it.
func raise(ctx context.Context, pool *pg.Pool, v job.Version, generation int) error {
	err := pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, "LOCK TABLE "+qualified(v.Schema,
			v.Pointer())+" IN SHARE UPDATE EXCLUSIVE MODE"); err != nil {
			return err
		}
		var is int
		if err := tx.QueryRow(ctx, "SELECT "+known(v)).Scan(&is); err != nil || is >= generation {
			return err
		}
		_, err := tx.Exec(ctx, "CREATE OR REPLACE "+knownBody(v, generation))
		return err
	})
	if err != nil {
		return fmt.Errorf("let readers see generation %d of %s: %w", generation, v.Ref, refused(err))
	}
	return nil
}

// dropKnown drops the function. What the version's tables are read by is gone already.
func dropKnown(ctx context.Context, db pg.DB, v job.Version) error {
	comment, there, err := readKnown(ctx, db, v)
	if err != nil || !there {
		return err
	}
	if !strings.Contains(comment, writtenFor(v.Ref)) {
		return notOurs(fmt.Sprintf("function %s was not made by kappactl for %s and is not dropped", known(v), v.Ref),
			"rename or drop it yourself")
	}
	if _, err := db.Exec(ctx, "DROP FUNCTION IF EXISTS "+known(v)); err != nil {
		return fmt.Errorf("drop function %s: %w", known(v), refused(err))
	}
	return nil
}

// leftLayers are the statements that write a comment on the version's generations and on the function that bounds them.
func leftLayers(ctx context.Context, db pg.DB, v job.Version, text string) (steps []string, err error) {
	members, err := Members(ctx, db, v)
	if err != nil {
		return nil, err
	}
	for generation := range members {
		steps = append(steps, comment("TABLE", qualified(v.Schema, v.Member(generation)), text))
	}
	is, there, err := readKnown(ctx, db, v)
	if err == nil && there && strings.Contains(is, writtenFor(v.Ref)) {
		steps = append(steps, comment("FUNCTION", known(v), text))
	}
	return steps, err
}

// memberPattern is the regular expression of the names of generations, empty without any.
func memberPattern(v job.Version) string {
	if !v.Layout.Lambda {
		return ""
	}
	return "^" + v.Table() + "_g[0-9]+$"
}
