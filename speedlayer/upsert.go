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
	order := strings.Join(of("e", keys), ", ")
	return fmt.Sprintf(`INSERT INTO %s AS t (%s)
SELECT %s
  FROM (SELECT %s FROM unnest(%s) AS a (%s)) AS e
 GROUP BY %s ORDER BY %s
ON CONFLICT (%s) DO %s`,
		pg.Ident(schema, ref.Table()), strings.Join(columns, ", "), strings.Join(merged(l), ", "),
		strings.Join(typed, ", "), strings.Join(params, ", "), numbered("c", len(names)),
		order, order, strings.Join(keys, ", "), conflict(l))
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
