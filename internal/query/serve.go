package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// serveColumns returns the columns of serve.columns. Their expressions are PostgreSQL SQL, so only the database knows
// their types. They are exact if all columns they can read are exact.
func (c *compiler) serveColumns(l job.Layout) []job.ViewColumn {
	isExact, taken := true, map[string]bool{}
	for _, v := range l.View {
		isExact = isExact && v.Exact
		taken[strings.ToLower(v.Name)] = true
	}
	var out []job.ViewColumn
	for _, sc := range c.spec.Serve.Columns {
		path := "columns." + sc.Name
		if cause, cure := nameProblem(sc.Name); cause != "" {
			c.refused.serve(path, cause, strings.ReplaceAll(cure, "… AS name", "another key"))
		}
		if taken[strings.ToLower(sc.Name)] {
			c.refused.serve(path, fmt.Sprintf("the query already has a column %q", sc.Name),
				"give the computed column another name")
		}
		taken[strings.ToLower(sc.Name)] = true
		out = append(out, job.ViewColumn{
			Name: sc.Name, Finish: sc.Expr, StoredAs: "computed", Exact: isExact, Computed: true,
		})
	}
	return out
}

// checkServe refuses settings below serve that do not fit a rollup with this layout.
func (c *compiler) checkServe(l job.Layout) {
	stored, known := map[string]bool{}, []string{}
	for _, k := range l.Keys {
		stored[k.Name], known = true, append(known, k.Name)
	}
	for _, s := range l.States {
		stored[s.Name] = true
	}
	for i, index := range c.spec.Serve.Indexes {
		for _, name := range index {
			if !stored[name] {
				cause := fmt.Sprintf("%q is not a column of the version table", name)
				if slices.ContainsFunc(l.View, func(v job.ViewColumn) bool { return v.Name == name }) {
					cause = fmt.Sprintf("%q is computed by the view, from what the version table stores for it", name)
				}
				c.refused.serve(fmt.Sprintf("indexes[%d]", i), cause, "index group keys: "+describe(known...))
			}
		}
	}
	if len(c.spec.Serve.Key) > 0 {
		c.refused.serve("key", "serve.key is for queries without aggregates: the key of this one is its GROUP BY",
			"remove it")
	}
	if c.spec.Serve.OrderBy != "" {
		c.refused.serve("order_by", "serve.order_by is for queries without aggregates", "remove it")
	}
	if c.spec.Serve.Keep > 0 && !hasTimeKey(l) {
		c.refused.serve("keep", "serve.keep needs a time among the group keys",
			"add date_trunc('day', …) AS day to the query, or remove serve.keep")
	}
}

// keepOf returns serve.keep over the first time key, which leads the index, or over the first time column of appended
// rows.
func keepOf(spec *job.Spec, l job.Layout) *job.Keep {
	if spec.Serve.Keep <= 0 {
		return nil
	}
	if name := rowTime(l); name != "" {
		i := slices.IndexFunc(l.View, func(v job.ViewColumn) bool { return v.Name == name })
		return &job.Keep{Column: name, Type: l.View[i].Type, For: spec.Serve.Keep}
	}
	if !hasTimeKey(l) {
		return nil
	}
	return &job.Keep{Column: l.Keys[0].Name, Type: l.Keys[0].Type, For: spec.Serve.Keep}
}

// indexesOf returns serve.indexes and an index to find expired rows.
func indexesOf(spec *job.Spec, l job.Layout) [][]string {
	name := rowTime(l)
	if l.Keep == nil || name == "" || slices.ContainsFunc(spec.Serve.Indexes,
		func(columns []string) bool { return columns[0] == name }) {
		return spec.Serve.Indexes
	}
	return append(slices.Clone(spec.Serve.Indexes), []string{name})
}

func hasTimeKey(l job.Layout) bool {
	for _, k := range l.Keys {
		if k.Time {
			return true
		}
	}
	return false
}
