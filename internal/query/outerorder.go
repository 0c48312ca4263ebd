package query

import (
	"fmt"
	"slices"
	"strings"
)

// takeOrder takes ORDER BY and LIMIT of the outermost SELECT. Without a LIMIT the order is dropped, because a view has
// none.
func (c *compiler) takeOrder(modifiers []tree) {
	var orders []tree
	for _, m := range modifiers {
		switch m.kind() {
		case modifierOrder:
			orders = m.list("orders")
		case modifierLimit:
			c.outer.limit = c.limit(m)
		case modifierDistinct:
			c.distinctGroups(m)
		}
	}
	if c.outer.limit == "" {
		if len(orders) > 0 {
			c.warnOrder(orders)
		}
		return
	}
	for _, o := range orders {
		c.outer.orders = append(c.outer.orders, outerOrder{node: c.orderTerm(o.child("expression")), how: direction(o)})
	}
}

// The kinds of modifiers of a SELECT.
const (
	modifierOrder    = "ORDER_MODIFIER"
	modifierLimit    = "LIMIT_MODIFIER"
	modifierDistinct = "DISTINCT_MODIFIER"
)

// direction returns the direction of an ORDER BY term, with the place of NULL, which is last in DuckDB by default.
func direction(o tree) string {
	how := "ASC"
	if o.kind() == "DESCENDING" {
		how = "DESC"
	}
	if strings.Contains(strings.ReplaceAll(o.text("null_order"), "_", " "), "NULLS FIRST") {
		return how + " NULLS FIRST"
	}
	return how + " NULLS LAST"
}

// orderTerm returns an ORDER BY term over the columns of the inner statement: a number or an alias of the select list,
// or an expression.
func (c *compiler) orderTerm(e tree) tree {
	if n, ok := e.integer(); ok {
		if n < 1 || n > len(c.asked()) {
			c.refused.add(e.at(), fmt.Sprintf("ORDER BY %d: the select list has %d columns", n, len(c.asked())),
				"write the number of a column, from 1")
			return e
		}
		e = c.asked()[n-1]
	} else if of := c.aliased(e); e.class() == classColumn && of != nil {
		e = of
	}
	return c.lift(e, orderName)
}

// limit returns LIMIT and OFFSET as text.
func (c *compiler) limit(m tree) string {
	text := ""
	for _, part := range []string{"limit", "offset"} {
		e := m.child(part)
		if e == nil {
			continue
		}
		n, ok := e.integer()
		if !ok || n < 0 {
			c.refused.add(placeOf(e), strings.ToUpper(part)+" is not a number", "write a number, such as LIMIT 10")
			continue
		}
		text += fmt.Sprintf(" %s %d", strings.ToUpper(part), n)
	}
	return strings.TrimSpace(text)
}

// tieBreakers returns the group keys, by which rows that are equal in ORDER BY are ordered. It refuses keys whose order
// differs in PostgreSQL.
func (c *compiler) tieBreakers() []item {
	var out []item
	for _, it := range c.items {
		if !it.key || it.derived {
			continue
		}
		if !comparable(it.duck, it.pg) {
			c.refused.add(it.at, named(it.name, "values of "+it.duck+" have another order in PostgreSQL, so that LIMIT is "+
				"ambiguous"), "remove LIMIT, and limit when reading the view")
		}
		out = append(out, it)
	}
	return out
}

// hasModifier reports whether a SELECT has a modifier of this kind.
func hasModifier(node tree, kind string) bool {
	return slices.ContainsFunc(node.list("modifiers"), func(m tree) bool { return m.kind() == kind })
}

// distinctRows makes SELECT DISTINCT without aggregates an aggregation: a row for each set of values.
func (c *compiler) distinctRows(list []tree) {
	if !hasModifier(c.node, modifierDistinct) || len(c.node.list("group_expressions")) > 0 || len(c.spec.Serve.Key) > 0 ||
		slices.ContainsFunc(list, c.aggregates) || len(c.refused.problems) > 0 {
		return
	}
	c.node["aggregate_handling"] = groupByAll
	c.withoutDistinct()
}

// groupByAll is how the parse tree marks GROUP BY ALL.
const groupByAll = "FORCE_AGGREGATES"

func (c *compiler) withoutDistinct() {
	modifiers, _ := c.node["modifiers"].([]any)
	c.node["modifiers"] = slices.DeleteFunc(modifiers, func(m any) bool { return asTree(m).kind() == modifierDistinct })
}

func (c *compiler) warnOrder(orders []tree) {
	c.refused.warn(placeOf(orders[0].child("expression")), "a view has no order, so ORDER BY changes nothing",
		"remove it, and order when reading the view")
}

// distinctGroups takes DISTINCT over an aggregation. Rows with different keys differ, so it changes nothing if all keys
// are selected.
func (c *compiler) distinctGroups(m tree) {
	if slices.ContainsFunc(c.items, func(it item) bool { return it.key && it.hidden }) {
		c.refused.add(firstPlace(m), "DISTINCT over a part of the group keys cannot be merged",
			"select all columns of GROUP BY, or remove DISTINCT")
		return
	}
	c.refused.warn(firstPlace(c.node), "DISTINCT changes nothing: each row has its own group key", "remove it")
}
