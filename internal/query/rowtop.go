package query

import (
	"fmt"
	"slices"
	"strings"
)

// rowTop is ORDER BY with LIMIT over a query of rows: the view shows the first rows only.
type rowTop struct {
	orders []rowOrder
	limit  string
}

type rowOrder struct {
	item int
	how  string
}

// takeRowOrder takes ORDER BY and LIMIT of a query of rows. Without LIMIT the order is dropped: a view has none.
func (c *compiler) takeRowOrder() {
	var orders []tree
	for _, m := range c.node.list("modifiers") {
		switch m.kind() {
		case modifierOrder:
			orders = m.list("orders")
		case modifierLimit:
			c.rows.top.limit = c.limit(m)
		}
	}
	switch {
	case c.rows.top.limit == "" && len(orders) > 0:
		c.warnOrder(orders)
	case c.rows.top.limit != "":
		for _, o := range orders {
			if i := c.rowItem(o.child("expression")); i >= 0 {
				c.rows.top.orders = append(c.rows.top.orders, rowOrder{i, direction(o)})
			}
		}
		c.refused.warn(firstPlace(c.node), "the view keeps all rows, and sorts them each time it is read",
			"move LIMIT to the "+
				"readers' queries if there are many rows")
	}
	c.reduced = c.reduced || len(c.node.list("modifiers")) > 0
	c.node["modifiers"] = []any{}
}

// rowItem returns the index of the item that an ORDER BY term of rows is, or -1 if it was refused.
func (c *compiler) rowItem(e tree) int {
	if n, ok := e.integer(); ok && n >= 1 && n <= len(c.items) {
		return n - 1
	}
	i := slices.IndexFunc(c.items, func(it item) bool { return it.node.signature("") == e.signature("") })
	if names := e.texts("column_names"); i < 0 && e.class() == classColumn && len(names) == 1 {
		i = slices.IndexFunc(c.items, func(it item) bool { return strings.EqualFold(it.name, names[0]) })
	}
	if i < 0 {
		c.refused.add(placeOf(e), "ORDER BY with LIMIT takes columns of the select list", "select the value, or limit when "+
			"reading the view")
	}
	return i
}

// typeTop refuses values whose order differs in PostgreSQL.
func (c *compiler) typeTop() {
	for _, o := range c.rows.top.orders {
		it := c.items[o.item]
		if it.pg != "" && !comparable(it.duck, it.pg) {
			c.refused.add(it.at, named(it.name, "values of "+it.duck+" have another order in PostgreSQL"),
				"order by a number, a text or a time, or limit when reading the view")
		}
	}
}

// topClause returns ORDER BY and LIMIT over rows s of the version table. Rows of equal order are ordered by their key.
func (c *compiler) topClause(keys []string) string {
	if c.rows.top.limit == "" {
		return ""
	}
	var terms []string
	for _, o := range c.rows.top.orders {
		it := c.items[o.item]
		terms = append(terms, collated("s."+ident(it.name), it.pg)+" "+o.how)
	}
	return "ORDER BY " + strings.Join(append(terms, keys...), ", ") + " " + c.rows.top.limit
}

// topOracle returns the same over rows p of the oracle.
func (c *Compiled) topOracle(keys ...string) string {
	if c.rows.top.limit == "" {
		return ""
	}
	var terms []string
	for _, o := range c.rows.top.orders {
		terms = append(terms, fmt.Sprintf("p.%s %s", ident(c.rows.items[o.item].name), o.how))
	}
	return " ORDER BY " + strings.Join(append(terms, keys...), ", ") + " " + c.rows.top.limit
}
