package serving

import (
	"context"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// SelectGeneration is the SELECT of what readers would see of a generation alone or, with until, of it and of the
// table's rows with its epoch or a later one before until. The generation need not be in the batch table.
func (*Store) SelectGeneration(v job.Version, generation int, until *int) string {
	names, _ := v.Layout.StagedColumns()
	columns := make([]string, len(names))
	for i, n := range names {
		columns[i] = ident(n)
	}
	stored := strings.Join(columns, ", ")
	rows := fmt.Sprintf("SELECT %s FROM %s", stored, qualified(v.Schema, v.Member(generation)))
	if until != nil {
		rows += fmt.Sprintf("\n\tUNION ALL SELECT %s FROM %s WHERE %s >= %d AND %[3]s < %[5]d",
			stored, relation(v), ident(job.EpochColumn), generation, *until)
	}
	items, group := merging(v.Layout, columns)
	if until == nil && group != "" { // one row for each key, whose states are merged
		items, group = strings.Join(of("e", columns), ", "), ""
	}
	return selectOver(v, fmt.Sprintf("(SELECT %s\nFROM (%s) AS e%s)", items, rows, group))
}

// AnalyzeMember gives the planner statistics of the table of a generation.
func (*Store) AnalyzeMember(ctx context.Context, db pg.DB, v job.Version, generation int) error {
	table := qualified(v.Schema, v.Member(generation))
	if _, err := db.Exec(pg.Long(ctx), "ANALYZE "+table); err != nil {
		return fmt.Errorf("analyze %s: %w", table, refused(err))
	}
	return nil
}

// Show makes readers see another generation, from the commit of the transaction on; false when they do not see the
// expected one. No statement of theirs waits for it or sees both.
func (*Store) Show(ctx context.Context, tx *pg.Tx, v job.Version, from, to int) (bool, error) {
	tag, err := tx.Exec(ctx, fmt.Sprintf("UPDATE %s SET generation = $1 WHERE generation = $2",
		qualified(v.Schema, v.Pointer())), to, from)
	if err != nil {
		return false, fmt.Errorf("show generation %d of %s: %w", to, v.Ref, refused(err))
	}
	return tag.RowsAffected() == 1, nil
}
