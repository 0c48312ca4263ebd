package speedlayer

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// upsert is the statement that merges arriving rows into a version table: one text[] parameter for each column of
// StagedColumns. Rows of one key are merged first, since a statement may not touch a row twice, and rows are locked in
// the order of the unique index, so that two writers do not meet crosswise.
func upsert(ref job.Ref, schema string, l job.Layout) string {
	names, types := l.StagedColumns()
	columns, params, typed := make([]string, len(names)), make([]string, len(names)), make([]string, len(names))
	for i, n := range names {
		columns[i] = pg.Ident(n)
		params[i] = fmt.Sprintf("$%d::text[]", i+1)
		typed[i] = fmt.Sprintf("a.c%d::%s AS %s", i, types[i], columns[i])
	}
	keys := append(append([]string{}, columns[1:1+len(l.Keys)]...), columns[0])
	into := fmt.Sprintf("INSERT INTO %s AS t (%s)", pg.Ident(schema, ref.Table()), strings.Join(columns, ", "))
	rows := fmt.Sprintf("(SELECT %s FROM unnest(%s) AS a (%s)) AS e", strings.Join(typed, ", "), strings.Join(params, ", "), numbered("c", len(names)))
	order := strings.Join(of("e", keys), ", ")
	switch l.Shape {
	case job.Rows: // each is there once; a second one is an error, not something to merge
		return fmt.Sprintf("%s\nSELECT %s\n  FROM %s", into, strings.Join(of("e", columns), ", "), rows)
	case job.Latest:
		return fmt.Sprintf("%s\nSELECT %s\n  FROM %s\nON CONFLICT (%s) DO %s", into, latest(columns, keys), rows+" ORDER BY "+latestOrder(l, keys),
			strings.Join(keys, ", "), replaceOlder(l))
	case job.Rollup, job.Adopted: // what was adopted is never written
	}
	return fmt.Sprintf("%s\nSELECT %s\n  FROM %s\n GROUP BY %s ORDER BY %s\nON CONFLICT (%s) DO %s",
		into, strings.Join(merged(l), ", "), rows, order, order, strings.Join(keys, ", "), conflict(l))
}

// latest is the select list that keeps of the rows of relation e the latest of each key, when they come in latestOrder.
func latest(columns, keys []string) string {
	return fmt.Sprintf("DISTINCT ON (%s) %s", strings.Join(of("e", keys), ", "), strings.Join(of("e", columns), ", "))
}

// latestOrder goes by key, and within it from the latest row back: by the declared order, then by place in the log.
func latestOrder(l job.Layout, keys []string) string {
	order := of("e", keys)
	for _, c := range orderColumns(l) {
		order = append(order, "e."+c+" DESC")
	}
	return strings.Join(order, ", ")
}

func orderColumns(l job.Layout) []string {
	if l.Ordered() {
		return []string{pg.Ident(job.OrderColumn), pg.Ident(job.PlaceColumn)}
	}
	return []string{pg.Ident(job.PlaceColumn)}
}

// replaceOlder lets an arriving row take the place of a stored one that is older. Rows that delete are stored like others, so
// that an older row that comes late does not bring the key back.
func replaceOlder(l job.Layout) string {
	columns := make([]string, len(l.States))
	for i, s := range l.States {
		columns[i] = pg.Ident(s.Name)
	}
	order := orderColumns(l)
	return fmt.Sprintf("UPDATE SET (%s) = ROW(%s) WHERE (%s) > (%s)", strings.Join(columns, ", "), strings.Join(of("excluded", columns), ", "),
		strings.Join(of("excluded", order), ", "), strings.Join(of("t", order), ", "))
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
