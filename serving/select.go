package serving

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// Select is the SELECT of one version as readers see it: keys and finished aggregates, then serve.columns over them,
// then serve.where over all. A version of several lanes is merged by key first.
func (*Store) Select(ref job.Ref, schema string, l job.Layout) string {
	text := finished(ref, schema, l)
	computed := false
	var names, outer []string
	for _, c := range l.View {
		names = append(names, "v."+ident(c.Name))
		if c.Computed {
			computed = true
			outer = append(outer, fmt.Sprintf("(%s\n) AS %s", c.Finish, ident(c.Name)))
		} else {
			outer = append(outer, "v."+ident(c.Name))
		}
	}
	if computed {
		text = fmt.Sprintf("SELECT %s\nFROM (%s) AS v", strings.Join(outer, ", "), text)
	}
	if l.Where != "" {
		text = fmt.Sprintf("SELECT %s\nFROM (%s) AS v\nWHERE (%s\n)", strings.Join(names, ", "), text, l.Where)
	}
	return text
}

// finished is the SELECT of the query's own columns, without serve.columns and serve.where.
func finished(ref job.Ref, schema string, l job.Layout) string {
	var columns []string
	for _, c := range l.View {
		if c.Computed {
			continue
		}
		// The cast repairs a length or precision that an expression lost; where there is none it vanishes.
		columns = append(columns, fmt.Sprintf("(%s)::%s AS %s", c.Finish, c.Type, ident(c.Name)))
	}
	where := ""
	if l.Shape == job.Latest {
		where = "\nWHERE NOT s." + ident(job.DeletedColumn)
	}
	if l.Keep.Limits() { // whatever is deleted by now
		where = fmt.Sprintf("\nWHERE (s.%s >= %s OR s.%[1]s IS NULL)", ident(l.Keep.Column), l.Keep.Cutoff())
	}
	return fmt.Sprintf("SELECT %s\nFROM %s AS s%s", strings.Join(columns, ", "), merged(ref, schema, l), where)
}

// merged is the version's rows with one row a key. A rollup without keys is an aggregation over its table whatever the
// lanes, so that readers always see its one row, also before the first record (docs/decisions/020).
func merged(ref job.Ref, schema string, l job.Layout) string {
	table := qualified(schema, ref.Table())
	one := len(l.Keys) == 0
	if l.Shape == job.Adopted || l.Lanes <= 1 && !one {
		return table
	}
	var columns, keys []string
	for _, k := range l.Keys {
		keys = append(keys, "e."+ident(k.Name))
	}
	columns = append(columns, keys...)
	for _, s := range l.States {
		columns = append(columns, s.Aggregate+" AS "+ident(s.Name))
	}
	by := ""
	if len(keys) > 0 {
		by = " GROUP BY " + strings.Join(keys, ", ")
	}
	return fmt.Sprintf("(SELECT %s FROM %s AS e%s)", strings.Join(columns, ", "), table, by)
}
