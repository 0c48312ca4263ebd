package serving

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// describe says which columns a SELECT gives, without running it.
func describe(ctx context.Context, db queryer, text string) ([]Column, error) {
	rows, err := db.Query(ctx, fmt.Sprintf("SELECT * FROM (%s\n) AS q LIMIT 0", text))
	if err != nil {
		return nil, err
	}
	var columns []Column
	var oids []int64
	var typmods []int32
	for _, f := range rows.FieldDescriptions() {
		columns = append(columns, Column{Name: f.Name})
		oids, typmods = append(oids, int64(f.DataTypeOID)), append(typmods, f.TypeModifier)
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return nil, err
	}
	types, err := db.Query(ctx, selectTypes, pgx.NamedArgs{"oids": oids, "typmods": typmods})
	if err != nil {
		return nil, err
	}
	printed, err := pgx.CollectRows(types, pgx.RowToStructByName[struct {
		Type       string
		Collatable bool
	}])
	if err != nil {
		return nil, err
	}
	if len(printed) != len(columns) {
		return nil, fmt.Errorf("%d of %d column types are known", len(printed), len(columns))
	}
	var collatable []int
	for i, p := range printed {
		columns[i].Type = p.Type
		if p.Collatable {
			collatable = append(collatable, i)
		}
	}
	return columns, collations(ctx, db, text, columns, collatable)
}

// collations fills in the collations of the columns at the given places.
func collations(ctx context.Context, db queryer, text string, columns []Column, at []int) error {
	if len(at) == 0 {
		return nil
	}
	ask := make([]string, len(at))
	for i, c := range at {
		ask[i] = "coalesce(pg_collation_for(x." + ident(columns[c].Name) + "), '')"
	}
	rows, err := db.Query(ctx,
		fmt.Sprintf("SELECT ARRAY[%s] FROM (SELECT) AS one LEFT JOIN (SELECT * FROM (%s\n) AS q LIMIT 0) AS x ON true",
			strings.Join(ask, ", "), text))
	if err != nil {
		return err
	}
	short, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[[]string])
	if err != nil {
		return err
	}
	rows, err = db.Query(ctx, selectCollationNames, pgx.NamedArgs{"names": short})
	if err != nil {
		return err
	}
	full, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for i, c := range at {
		columns[c].Collation = full[i]
	}
	return nil
}

// prove refuses a version whose SELECT does not stand or whose computed columns do not fit the readers' contract, long
// before it would be switched to.
func (s *Store) prove(ctx context.Context, db pg.DB, v job.Version) error {
	if err := s.confine(ctx, db, v); err != nil { // first: to describe a SELECT PostgreSQL may call functions of it
		return err
	}
	columns, err := describe(ctx, db, s.Select(v))
	if err != nil {
		return fmt.Errorf("select from %s: %w", v.Ref, badSQL(err, v.Layout))
	}
	rows, err := db.Query(ctx, selectContract, pgx.NamedArgs{"job": string(v.Job)})
	if err != nil {
		return fmt.Errorf("read contract of %s: %w", v.Job, err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("read contract of %s: %w", v.Job, err)
	}
	if len(texts) == 0 || texts[0] == "" {
		return nil
	}
	contract, err := parseContract([]byte(texts[0]))
	if err != nil {
		return err
	}
	// Which columns are added was judged when the version was staged.
	return contract.fits(columns, true)
}
