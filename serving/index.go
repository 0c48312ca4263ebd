package serving

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Index makes the unique index that the commit's ON CONFLICT needs, then serve.indexes. A table that has the first is in
// use, so the others are then made without stopping its writers; db must not be a transaction.
func (s *Store) Index(ctx context.Context, db pg.DB, ref job.Ref, schema string, l job.Layout) error {
	inUse, err := s.keyIndex(ctx, db, ref, schema, l)
	if err != nil {
		return err
	}
	return moreIndexes(ctx, db, ref, schema, l, inUse)
}

// keyIndex makes the unique index: the keys in the layout's order, then the lane, where a NULL key equals a NULL key. An
// index that was left unfinished is made again. stood says that it was there.
func (*Store) keyIndex(ctx context.Context, db pg.DB, ref job.Ref, schema string, l job.Layout) (stood bool, err error) {
	columns := indexColumns(l)
	name, table := keyIndex(ref), qualified(schema, ref.Table())
	have, err := readIndex(ctx, db, ref, schema)
	if err != nil {
		return false, err
	}
	if have != nil {
		switch {
		case !have.OnTable || !have.IsIndex:
			return false, notOurs(fmt.Sprintf("%s exists and is not the index of %s", qualified(schema, name), table), "rename that relation")
		case have.IsValid && have.IsUnique && slices.Equal(have.Columns, columns):
			return true, nil
		}
		if _, err := db.Exec(ctx, "DROP INDEX IF EXISTS "+qualified(schema, name)); err != nil {
			return false, fmt.Errorf("drop the unfinished index %s: %w", name, refused(err))
		}
	}
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = ident(c)
	}
	_, err = db.Exec(pg.Long(ctx), fmt.Sprintf("CREATE UNIQUE INDEX IF NOT EXISTS %s ON %s (%s) NULLS NOT DISTINCT", ident(name), table, strings.Join(quoted, ", ")))
	if err != nil {
		return false, fmt.Errorf("index %s: %w", table, refused(err))
	}
	return false, nil
}

// indexColumns are the keys and the lane; without keys the lane alone.
func indexColumns(l job.Layout) []string {
	var names []string
	for _, k := range l.Keys {
		names = append(names, k.Name)
	}
	return append(names, job.LaneColumn)
}

type indexFacts struct {
	IsIndex  bool
	OnTable  bool
	IsUnique bool
	IsValid  bool
	Columns  []string
}

func readIndex(ctx context.Context, db pg.DB, ref job.Ref, schema string) (*indexFacts, error) {
	name := keyIndex(ref)
	rows, err := db.Query(ctx, selectIndex, pgx.NamedArgs{"schema": schema, "name": name, "table": ref.Table()})
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
