package serving

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Drop removes the version's tables, never what depends on them: that is a refusal which lists it.
func (s *Store) Drop(ctx context.Context, db pg.DB, v job.Version) error {
	found, err := ownRelations(ctx, db, v)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		if err := s.dropTables(ctx, db, v, found); err != nil {
			return err
		}
	}
	if !v.Layout.Lambda {
		return nil
	}
	return dropKnown(ctx, db, v)
}

func (s *Store) dropTables(ctx context.Context, db pg.DB, v job.Version, found []ownRelation) error {
	tables := make([]string, len(found))
	for i, f := range found {
		tables[i] = qualified(v.Schema, f.Name)
		if !f.ours(v.Ref) {
			return notOurs(fmt.Sprintf("%s was not made by kappactl for %s and is not dropped", tables[i], v.Ref),
				"rename or drop that relation yourself")
		}
	}
	// One text without parameters is one transaction, so the timeout ends with it.
	_, err := db.Exec(pg.Long(ctx), fmt.Sprintf("SET LOCAL lock_timeout = %d; DROP TABLE IF EXISTS %s",
		s.config.DropLockTimeout.Milliseconds(), strings.Join(tables, ", ")))
	if err != nil {
		return fmt.Errorf("drop table %s: %w", strings.Join(tables, ", "), refused(err))
	}
	return nil
}

type ownRelation struct{ Name, Comment string }

func (o ownRelation) ours(ref job.Ref) bool { return strings.Contains(o.Comment, writtenFor(ref)) }

// ownRelations lists what has the names of the version's tables, with generations that are not in the batch table:
// those that are go with it.
func ownRelations(ctx context.Context, db pg.DB, v job.Version) ([]ownRelation, error) {
	found, err := pg.Structs[ownRelation](ctx, db, selectOwn,
		pgx.NamedArgs{"schema": v.Schema, "tables": v.Tables(), "member": memberPattern(v)})
	if err != nil {
		return nil, fmt.Errorf("look for the tables of %s: %w", v.Ref, err)
	}
	return found, nil
}

// Dependants lists the relations and functions that read a version's tables, without the serving view.
func (*Store) Dependants(ctx context.Context, db pg.DB, v job.Version, view job.ViewName) ([]string, error) {
	names, err := namesOf(ctx, db, selectDependants,
		pgx.NamedArgs{"schema": view.Schema, "tables": v.Tables(), "member": memberPattern(v), "view": view.Name})
	if err != nil {
		return nil, fmt.Errorf("dependants of %s: %w", v.Ref, err)
	}
	return names, nil
}
