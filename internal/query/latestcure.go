package query

import (
	"slices"
	"strings"
)

// latestCure is the fix for deduplication in the style of other systems: row_number() = 1, DISTINCT ON, QUALIFY.
const latestCure = "for the latest row of a key select its columns and write serve: {key: [k], order_by: t}, or " +
	"select arg_max(x, t); "

// latestLines returns the lines that serve the latest row of each of keys by orders, or latestCure with another fix if
// the query does not ask for that.
func (c *compiler) latestLines(remove string, keys, orders []tree, other string) string {
	names := columnNamesOf(keys)
	if len(names) == 0 || len(orders) != 1 || orders[0].kind() != "DESCENDING" {
		return latestCure + other
	}
	by := columnNamesOf([]tree{orders[0].child("expression")})
	if len(by) != 1 {
		return latestCure + other
	}
	var missing []string
	for _, name := range append(slices.Clone(names), by...) {
		if !slices.ContainsFunc(c.node.list("select_list"), func(e tree) bool { return nameOf(e) == name }) {
			missing = append(missing, name)
		}
	}
	add := ""
	if len(missing) > 0 {
		add = "add " + strings.Join(missing, ", ") + " to the select list; "
	}
	return remove + "; " + add + "write serve: {key: [" + strings.Join(names, ", ") + "], order_by: " + by[0] + "}"
}

// columnNamesOf returns the names of columns, or nothing if one of the expressions is not a column.
func columnNamesOf(list []tree) []string {
	var out []string
	for _, e := range list {
		if e.class() != classColumn {
			return nil
		}
		names := e.texts("column_names")
		out = append(out, names[len(names)-1])
	}
	return out
}

// distinctOn returns the fix for DISTINCT ON (keys) with ORDER BY keys, time DESC.
func (c *compiler) distinctOn(node, m tree, other string) string {
	keys := m.list("distinct_on_targets")
	var orders []tree
	for _, o := range node.list("modifiers") {
		if o.kind() == modifierOrder {
			orders = o.list("orders")
		}
	}
	if len(keys) == 0 || len(orders) <= len(keys) {
		return latestCure + other
	}
	return c.latestLines("remove DISTINCT ON and ORDER BY", keys, orders[len(keys):], other)
}

// qualified returns the fix for QUALIFY row_number() OVER (PARTITION BY keys ORDER BY time DESC) = 1.
func (c *compiler) qualified(q tree, other string) string {
	window := firstNumber(q, nil)
	if window == nil {
		return latestCure + other
	}
	return c.latestLines("remove QUALIFY", window.list("partitions"), window.list("orders"), other)
}
