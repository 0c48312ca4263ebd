package speedlayer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// upsert is the statement that merges arriving rows into a version table: one text[] parameter for each column of
// StagedColumns, and of mode lambda the epoch of the rows as the last. Rows of one key are merged first, since a
// statement may not touch a row twice, and rows are locked in the order of the unique index, so that two writers do not
// meet crosswise.
func upsert(v job.Version) string {
	names, types := v.Layout.StagedColumns()
	columns, params, typed := make([]string, len(names)), make([]string, len(names)), make([]string, len(names))
	for i, n := range names {
		columns[i] = pg.Ident(n)
		params[i] = fmt.Sprintf("$%d::text[]", i+1)
		typed[i] = fmt.Sprintf("a.c%d::%s AS %s", i, types[i], columns[i])
	}
	keys := columns[:len(v.Layout.Keys)]
	written, epoch := columns, ""
	if v.Layout.Lambda {
		written, epoch = append(slices.Clone(columns), pg.Ident(job.EpochColumn)), fmt.Sprintf(", $%d::integer", len(names)+1)
	}
	into := fmt.Sprintf("INSERT INTO %s AS t (%s)", pg.Ident(v.Schema, v.Table()), strings.Join(written, ", "))
	rows := fmt.Sprintf("(SELECT %s FROM unnest(%s) AS a (%s)) AS e", strings.Join(typed, ", "),
		strings.Join(params, ", "), numbered("c", len(names)))
	switch v.Layout.Shape {
	case job.Rows: // each is there once; a second one is an error, not something to merge
		return fmt.Sprintf("%s\nSELECT %s%s\n  FROM %s", into, strings.Join(of("e", columns), ", "), epoch, rows)
	case job.Latest:
		return fmt.Sprintf("WITH arriving AS (SELECT * FROM %s)\n%s\nSELECT l.*%s FROM (%s) AS l\nON CONFLICT %s DO %s",
			rows, into, epoch,
			latest(v.Layout, columns, keys, "arriving"), pg.UniqueKey(v.TableKey()), replaceOlder(v.Layout))
	case job.Rollup, job.Adopted, job.Written: // what was adopted is never written
	}
	order := ""
	if len(keys) > 0 {
		order = " ORDER BY " + strings.Join(of("e", keys), ", ")
	}
	return fmt.Sprintf("%s\nSELECT %s%s\n  FROM %s\n %s%s\nON CONFLICT %s DO %s",
		into, strings.Join(merged(v.Layout), ", "), epoch, rows, grouped(keys), order, pg.UniqueKey(v.TableKey()),
		conflict(v.Layout))
}

// grouped is the clause that makes one row of all rows of relation e with one key; without keys one row of all rows,
// and none of none.
func grouped(keys []string) string {
	if len(keys) == 0 {
		return "HAVING count(*) > 0"
	}
	return "GROUP BY " + strings.Join(of("e", keys), ", ")
}

// latest is the SELECT that makes of the rows of a relation one a key: the latest that is no tombstone, by the
// declared order and then by place in the log, and beside it where the key's tombstones are.
func latest(l job.Layout, columns, keys []string, from string) string {
	deletes := pg.Ident(job.DeletesColumn)
	items, order, same := of("e", columns), of("e", keys), make([]string, len(keys))
	for i, c := range columns {
		if c == deletes {
			items[i] = "d." + deletes
		}
	}
	for _, c := range orderColumns(l) {
		order = append(order, "e."+c+" DESC NULLS LAST")
	}
	for i, k := range keys {
		same[i] = fmt.Sprintf("d.%s = e.%[1]s", k)
	}
	by := strings.Join(of("e", keys), ", ")
	gone := fmt.Sprintf("SELECT %s, %s AS %s FROM %s AS e WHERE e.%[3]s IS NOT NULL GROUP BY %[1]s",
		by, deletesOf(l).Aggregate, deletes, from)
	return fmt.Sprintf("SELECT DISTINCT ON (%s) %s\n  FROM %s AS e LEFT JOIN (%s) AS d ON %s\n ORDER BY %s",
		by, strings.Join(items, ", "), from, gone, strings.Join(same, " AND "), strings.Join(order, ", "))
}

// deletesOf is the state of a layout that holds where tombstones are.
func deletesOf(l job.Layout) job.StateColumn {
	i := slices.IndexFunc(l.States, func(s job.StateColumn) bool { return s.Name == job.DeletesColumn })
	return l.States[i]
}

func orderColumns(l job.Layout) []string {
	if l.Ordered() {
		return []string{pg.Ident(job.OrderColumn), pg.Ident(job.PlaceColumn)}
	}
	return []string{pg.Ident(job.PlaceColumn)}
}

// replaceOlder lets an arriving row take the place of a stored one that is older, and adds where tombstones are. Both
// are kept when a tombstone deletes the row, so that an older row that comes late does not bring the key back.
func replaceOlder(l job.Layout) string {
	place, deletes := pg.Ident(job.PlaceColumn), pg.Ident(job.DeletesColumn)
	order := orderColumns(l)
	newer := fmt.Sprintf("excluded.%s IS NOT NULL AND (t.%[1]s IS NULL OR (%[2]s) > (%[3]s))", place,
		strings.Join(of("excluded", order), ", "), strings.Join(of("t", order), ", "))
	columns, values := make([]string, len(l.States)), make([]string, len(l.States))
	for i, s := range l.States {
		columns[i] = pg.Ident(s.Name)
		values[i] = fmt.Sprintf("CASE WHEN w.newer THEN excluded.%s ELSE t.%[1]s END", columns[i])
		if s.Name == job.DeletesColumn {
			values[i] = s.Combine
		}
	}
	return fmt.Sprintf("UPDATE SET (%s) = (SELECT %s FROM (SELECT %s) AS w(newer), (SELECT excluded.%s) AS e(%[4]s))\n"+
		" WHERE excluded.%[4]s IS NOT NULL OR %[3]s", strings.Join(columns, ", "), strings.Join(values, ", "), newer, deletes)
}

// conflict combines a stored row t with the arriving row, which Combine calls e.
func conflict(l job.Layout) string {
	if len(l.States) == 0 {
		return "NOTHING"
	}
	var columns, combine, arriving []string
	for _, s := range l.States {
		columns = append(columns, pg.Ident(s.Name))
		combine = append(combine, s.Combine)
		arriving = append(arriving, "excluded."+pg.Ident(s.Name))
	}
	target := strings.Join(columns, ", ")
	if len(columns) > 1 {
		target = "(" + target + ")"
	}
	return fmt.Sprintf("UPDATE SET %s = (SELECT %s FROM (SELECT %s) AS e)",
		target, strings.Join(combine, ", "), strings.Join(arriving, ", "))
}

func numbered(prefix string, n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return strings.Join(out, ", ")
}
