package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// latestRow is the first row of each key in an order, as other systems write it:
//
//	SELECT … QUALIFY row_number() OVER (PARTITION BY k ORDER BY t DESC) = 1
//	SELECT … FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY t DESC) AS n FROM source) WHERE n = 1
//	SELECT DISTINCT ON (k) … ORDER BY k, t DESC
type latestRow struct{ keys, orders []tree }

// takeLatest rewrites such a query as one aggregation by the keys, whose columns are first(x ORDER BY t DESC).
func (c *compiler) takeLatest(ctx context.Context) error {
	if len(c.spec.Serve.Key) > 0 || c.node.kind() != nodeSelect || len(c.node.list("group_expressions")) > 0 ||
		c.node.text("aggregate_handling") == groupByAll || c.node.child("having") != nil {
		return nil
	}
	list, several := c.node.list("select_list"), false
	each(c.statement, func(n tree) bool {
		several = several || n.class() == classFunction && n.function() == "unnest"
		return true
	})
	if several || slices.ContainsFunc(list, c.calls) {
		return nil
	}
	found := c.qualifiedRow()
	if found == nil {
		found = c.numberedRow()
	}
	if found == nil {
		found = c.distinctRow()
	}
	if found == nil || len(found.keys) == 0 {
		return nil
	}
	return c.firstRows(ctx, *found)
}

// calls reports whether an expression contains an aggregate or a window function.
func (c *compiler) calls(e tree) bool {
	found := c.aggregates(e)
	each(e, func(n tree) bool {
		found = found || n.class() == classWindow
		return true
	})
	return found || e.class() == classStar
}

// firstNumber returns the window of row_number() OVER (…) = 1; nil for other conditions. of resolves a column that
// names the window.
func firstNumber(condition tree, of func(name string) tree) tree {
	if condition.class() != classCompare {
		return nil
	}
	window, number := condition.child("left"), condition.child("right")
	if n, ok := window.integer(); ok && n == 1 {
		window, number = number, window
	}
	n, ok := number.integer()
	if !ok || !isFirst(condition.kind(), n) {
		return nil
	}
	if names := window.texts("column_names"); window.class() == classColumn && of != nil {
		window = of(names[len(names)-1])
	}
	if window.class() != classWindow || window.function() != "row_number" || window.child("filter_expr") != nil {
		return nil
	}
	return window
}

// qualifiedRow takes QUALIFY.
func (c *compiler) qualifiedRow() *latestRow {
	window := firstNumber(c.node.child("qualify"), nil)
	if window == nil || len(c.node.list("modifiers")) > 0 {
		return nil
	}
	c.node["qualify"] = nil
	return &latestRow{window.list("partitions"), window.list("orders")}
}

// numberedRow takes a subquery with a numbered row. Its keys and orders have to be columns that the subquery passes on.
func (c *compiler) numberedRow() *latestRow {
	from := c.node.child("from_table")
	inner := from.child("subquery").child("node")
	if from.kind() != fromSubquery || inner.kind() != nodeSelect || len(c.node.list("modifiers")) > 0 ||
		len(inner.list("modifiers")) > 0 || len(from.texts("column_name_alias")) > 0 {
		return nil
	}
	list, _ := inner["select_list"].([]any)
	at := -1
	window := firstNumber(c.node.child("where_clause"), func(name string) tree {
		at = slices.IndexFunc(list, func(e any) bool { return asTree(e).alias() == name })
		if at < 0 {
			return nil
		}
		return asTree(list[at])
	})
	if window == nil || at < 0 {
		return nil
	}
	found := latestRow{window.list("partitions"), window.list("orders")}
	needed := slices.Clone(found.keys)
	for _, o := range found.orders {
		needed = append(needed, o.child("expression"))
	}
	passes := func(e tree) bool {
		names := e.texts("column_names")
		return e.class() == classColumn && slices.ContainsFunc(inner.list("select_list"), func(i tree) bool {
			star := i.class() == classStar && len(i.texts("exclude_list"))+len(i.list("replace_list")) == 0
			return star || i.class() == classColumn && nameOf(i) == names[len(names)-1]
		})
	}
	for _, e := range needed {
		if !passes(e) {
			return nil
		}
		names := e.texts("column_names")
		e["column_names"] = []any{names[len(names)-1]}
	}
	one := asTree(cloneValue(map[string]any(c.node.child("where_clause").child("right"))))
	if _, ok := one.integer(); !ok {
		one = asTree(cloneValue(map[string]any(c.node.child("where_clause").child("left"))))
	}
	one["alias"] = window.alias()
	list[at] = map[string]any(one)
	c.node["where_clause"] = nil
	return &found
}

// distinctRow takes DISTINCT ON (keys) with ORDER BY keys, orders.
func (c *compiler) distinctRow() *latestRow {
	var keys, orders []tree
	for _, m := range c.node.list("modifiers") {
		switch m.kind() {
		case modifierDistinct:
			keys = m.list("distinct_on_targets")
		case modifierOrder:
			orders = m.list("orders")
		default:
			return nil
		}
	}
	same := func(a tree) bool {
		return slices.ContainsFunc(keys, func(k tree) bool { return k.signature("") == a.signature("") })
	}
	for len(orders) > 0 && same(orders[0].child("expression")) {
		orders = orders[1:]
	}
	named := func(e tree) bool {
		_, number := e.integer()
		return number || c.aliasedItem(e)
	}
	if len(keys) == 0 || len(orders) == 0 || slices.ContainsFunc(keys, named) ||
		slices.ContainsFunc(orders, func(o tree) bool { return named(o.child("expression")) }) {
		return nil
	}
	c.node["modifiers"] = []any{}
	return &latestRow{keys, orders}
}

// aliasedItem reports whether a column is the alias of another expression of the select list.
func (c *compiler) aliasedItem(e tree) bool {
	names := e.texts("column_names")
	return e.class() == classColumn && len(names) == 1 &&
		slices.ContainsFunc(c.node.list("select_list"), func(i tree) bool {
			return strings.EqualFold(i.alias(), names[0]) && i.signature("") != e.signature("")
		})
}

// firstRows makes the query an aggregation by the keys.
func (c *compiler) firstRows(ctx context.Context, l latestRow) error {
	with, terms := map[string]tree{}, make([]string, len(l.orders))
	for i, o := range l.orders {
		name := fmt.Sprintf("o%d", i+1)
		with[name], terms[i] = o.child("expression"), name+" "+direction(o)
	}
	text := "SELECT first(x)"
	if len(terms) > 0 {
		text = "SELECT first(x ORDER BY " + strings.Join(terms, ", ") + ")"
	}
	statements, err := c.session.parse(ctx, text)
	if err != nil {
		return fmt.Errorf("parse a form of the latest row: %w", err)
	}
	template := statements[0].child("node").list("select_list")[0]
	relation := relationName(c.node.child("from_table"))
	isKey := func(e tree) bool {
		return slices.ContainsFunc(l.keys, func(k tree) bool { return k.signature(relation) == e.signature(relation) })
	}
	var list, groups, set []any
	for _, e := range c.node.list("select_list") {
		name := nameOf(e)
		if !isKey(e) {
			at := e["query_location"]
			with["x"] = e
			e = fill(template, with)
			e["query_location"] = at
		}
		e["alias"] = name
		list = append(list, map[string]any(e))
	}
	for i, k := range l.keys {
		groups, set = append(groups, cloneValue(map[string]any(k))), append(set, number(i))
	}
	c.node["select_list"], c.node["group_expressions"], c.node["group_sets"] = list, groups, []any{set}
	c.reduced, c.rewritten = true, true
	c.refused.warn(firstPlace(c.node), "the row of each key is served that comes first in this order",
		"to let records without a value delete rows, "+c.latestLines("write the query without it", l.keys, l.orders,
			"else nothing"))
	return nil
}

// isFirst reports whether a comparison of row_number() with n holds for the first row only.
func isFirst(comparison string, n int) bool {
	switch comparison {
	case "COMPARE_EQUAL", "COMPARE_LESSTHANOREQUALTO":
		return n == 1
	case "COMPARE_LESSTHAN":
		return n == 2
	default:
		return false
	}
}
