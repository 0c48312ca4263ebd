package serving

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// Select is the SELECT of one version as readers see it: keys and finished aggregates, then serve.columns over them,
// then serve.where over all. A rollup without keys is merged first (see one).
func (*Store) Select(v job.Version) string { return selectOver(v, one(v)) }

// selectOver is Select over a relation that has one row of states for each key.
func selectOver(v job.Version, rows string) string {
	text := finished(v, rows)
	computed := false
	var names, outer []string
	for _, c := range v.Layout.View {
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
	if v.Layout.Where != "" {
		text = fmt.Sprintf("SELECT %s\nFROM (%s) AS v\nWHERE (%s\n)", strings.Join(names, ", "), text, v.Layout.Where)
	}
	return text
}

// finished is the SELECT of the query's own columns, without serve.columns and serve.where.
func finished(v job.Version, rows string) string {
	var columns []string
	for _, c := range v.Layout.View {
		if c.Computed {
			continue
		}
		// The cast repairs a length or precision that an expression lost; where there is none it vanishes.
		columns = append(columns, fmt.Sprintf("(%s)::%s AS %s", c.Finish, c.Type, ident(c.Name)))
	}
	return fmt.Sprintf("SELECT %s\nFROM %s AS s%s", strings.Join(columns, ", "), rows, shown(v.Layout))
}

// shown is which rows s readers see: the clauses behind FROM.
func shown(l job.Layout) string {
	var conditions []string
	if l.Hidden != "" {
		conditions = append(conditions, "NOT ("+l.Hidden+")")
	}
	if l.Keep.Limits() { // whatever is deleted by now
		conditions = append(conditions, fmt.Sprintf("(s.%s >= %s OR s.%[1]s IS NULL)", ident(l.Keep.Column), l.Keep.Cutoff()))
	}
	if l.Having != "" {
		conditions = append(conditions, "("+l.Having+")")
	}
	text := ""
	if len(conditions) > 0 {
		text = "\nWHERE " + strings.Join(conditions, "\n\tAND ")
	}
	if l.Top != "" {
		text += "\n" + l.Top
	}
	return text
}

// one is the relation of the version's rows, with one row for each key. A rollup without keys is an aggregation over
// its table, so that readers always see its one row, also before the first record (docs/decisions/020).
func one(v job.Version) string {
	switch {
	case v.Layout.Lambda:
		return merged(v)
	case v.Layout.Shape == job.Adopted || len(v.Layout.Keys) > 0:
		return relation(v)
	}
	return fmt.Sprintf("(SELECT %s FROM %s AS e)", strings.Join(aggregates(v.Layout), ", "), relation(v))
}

// aggregates merge the states of many rows of relation e.
func aggregates(l job.Layout) []string {
	columns := make([]string, len(l.States))
	for i, s := range l.States {
		columns[i] = s.Aggregate + " AS " + ident(s.Name)
	}
	return columns
}
