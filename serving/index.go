package serving

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// stored is a table that holds rows of a version, with the columns of its unique index; none: the index is over a
// constant.
type stored struct {
	job.Version
	name string // without schema
	key  []string
}

func (s stored) relation() string { return qualified(s.Schema, s.name) }

// Index makes the unique index that the commit's ON CONFLICT needs, then serve.indexes; of mode lambda also those of
// each generation in the batch table. A table that has the first is in use, so the others are then made without
// stopping its writers; db must not be a transaction.
func (s *Store) Index(ctx context.Context, db pg.DB, v job.Version) error {
	members, err := Members(ctx, db, v)
	if err != nil {
		return err
	}
	if err := makeIndexes(ctx, db, stored{v, v.Table(), v.TableKey()}); err != nil {
		return err
	}
	for generation, m := range members {
		if m.Pending {
			continue
		}
		if err := s.IndexMember(ctx, db, v, generation); err != nil {
			return err
		}
	}
	return nil
}

func makeIndexes(ctx context.Context, db pg.DB, t stored) error {
	inUse, err := makeKeyIndex(ctx, db, t)
	if err != nil {
		return err
	}
	return moreIndexes(ctx, db, t, inUse)
}

// makeKeyIndex makes the unique index over the key in the layout's order, where a NULL key equals a NULL key; without
// keys it is over a constant, so that the table holds one row. An unfinished index is made again. It returns whether
// the index was there already.
func makeKeyIndex(ctx context.Context, db pg.DB, t stored) (there bool, err error) {
	name := keyIndex(t.name)
	have, err := readIndex(ctx, db, t)
	if err != nil {
		return false, err
	}
	if have != nil {
		switch {
		case !have.OnTable || !have.IsIndex:
			return false, notOurs(fmt.Sprintf("%s exists and is not the index of %s", qualified(t.Schema, name), t.relation()),
				"rename that relation")
		case have.IsValid && have.IsUnique && have.Constant == (len(t.key) == 0) && slices.Equal(have.Columns, t.key):
			return true, nil
		}
		if _, err := db.Exec(ctx, "DROP INDEX IF EXISTS "+qualified(t.Schema, name)); err != nil {
			return false, fmt.Errorf("drop the unfinished index %s: %w", name, refused(err))
		}
	}
	_, err = db.Exec(pg.Long(ctx), fmt.Sprintf("CREATE UNIQUE INDEX IF NOT EXISTS %s ON %s %s NULLS NOT DISTINCT",
		ident(name), t.relation(), pg.UniqueKey(t.key)))
	if err != nil {
		return false, fmt.Errorf("index %s: %w", t.relation(), refused(err))
	}
	return false, nil
}

type indexFacts struct {
	IsIndex  bool
	OnTable  bool
	IsUnique bool
	IsValid  bool
	Constant bool // over the constant true, not over columns
	Columns  []string
}

func readIndex(ctx context.Context, db pg.DB, t stored) (*indexFacts, error) {
	name := keyIndex(t.name)
	rows, err := db.Query(ctx, selectIndex, pgx.NamedArgs{"schema": t.Schema, "name": name, "table": t.name})
	if err != nil {
		return nil, fmt.Errorf("look for index %s: %w", name, err)
	}
	i, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[indexFacts])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for index %s: %w", name, err)
	}
	return i, nil
}
