package query

import (
	"fmt"
	"slices"
	"strings"
)

// scope is the set of relations that a SELECT may read, by lower-case name.
type scope map[string]bool

func (s scope) with(name string) scope {
	out := scope{strings.ToLower(name): true}
	for k := range s {
		out[k] = true
	}
	return out
}

// shape refuses everything except one aggregation over row-local steps, and reports whether the query is a SELECT at
// all.
func (c *compiler) shape() bool {
	visible := scope{SourceRelation: true}
	each(c.statement, func(n tree) bool {
		if n.class() == classParameter {
			c.refused.add(n.at(), "the query has parameters", "write the values into the query")
		}
		return true
	})
	if !c.selectOnly(c.node) {
		return false
	}
	c.wholeRows()
	c.looseArrows()
	c.steps(c.node, visible)
	c.modifiers(c.node, "the query", c.above())
	if where := c.node.child("where_clause"); where != nil {
		c.expression(where, "")
	}
	return true
}

// wholeRows refuses a relation's name used as a value: it means all its columns at once, including those that are not
// read.
func (c *compiler) wholeRows() {
	relations, named := map[string]bool{}, map[string]bool{}
	for _, col := range c.source {
		named[strings.ToLower(col.name)] = true
	}
	each(c.statement, func(n tree) bool {
		switch {
		case n.kind() == fromTable || n.kind() == fromSubquery:
			relations[strings.ToLower(relationName(n))] = true
		case n.class() != "":
			named[strings.ToLower(n.alias())] = true
		}
		return true
	})
	each(c.statement, func(n tree) bool {
		names := n.texts("column_names")
		if n.class() == classColumn && len(names) == 1 && relations[strings.ToLower(names[0])] &&
			!named[strings.ToLower(names[0])] {
			c.refused.add(placeOf(n), fmt.Sprintf("%s refers to a whole row, whatever columns it has", names[0]),
				"name the columns")
		}
		return true
	})
}

// selectOnly refuses a query node that is not a SELECT.
func (c *compiler) selectOnly(node tree) bool {
	switch node.kind() {
	case nodeSelect:
		return true
	case nodeSetOp:
		c.refused.add(firstPlace(node), "set operations (UNION, INTERSECT, EXCEPT) cannot be computed in parts",
			"list both topics under source.topics, or deploy two jobs and unite their views")
	default:
		c.refused.add(firstPlace(node), "recursive queries cannot be computed in parts", "write one SELECT over source")
	}
	return false
}

// steps checks the CTEs and the FROM clause of a node: each must be a chain of row-local SELECTs over source.
func (c *compiler) steps(node tree, visible scope) {
	for _, cte := range node.child("cte_map").list("map") {
		c.rowLocal(cte.child("value").child("query").child("node"), visible)
		visible = visible.with(cte.text("key"))
	}
	c.from(node.child("from_table"), visible, firstPlace(node))
}

// from checks a FROM clause.
func (c *compiler) from(table tree, visible scope, at int) {
	if place := firstPlace(table); place >= 0 {
		at = place
	}
	if table.child("sample") != nil {
		c.refused.add(at, "a sample differs from run to run", "filter on the record instead: WHERE _offset % 10 = 0")
	}
	switch table.kind() {
	case fromTable:
		c.table(table, visible, at)
	case fromSubquery:
		c.rowLocal(table.child("subquery").child("node"), visible)
	case fromNothing:
		c.refused.add(at, "the query reads nothing", "add FROM source")
	case "JOIN":
		c.join(table, at)
	case "TABLE_FUNCTION":
		if streamWindow(table.child("function").function()) {
			c.refused.add(at, "window functions of other streaming SQL are not supported", cureWindow)
			return
		}
		c.refused.add(at, fmt.Sprintf("the table function %s cannot be read: a job reads source only",
			table.child("function").function()),
			"read the topic through source; files can be loaded into a topic with kappactl dev load")
	default:
		c.refused.add(at, "this kind of FROM cannot be computed in parts",
			"read source, or a subquery of projections and filters over it")
	}
}

func (c *compiler) table(table tree, visible scope, at int) {
	name := table.text("table_name")
	if table.text("schema_name") == "" && table.text("catalog_name") == "" && visible[strings.ToLower(name)] {
		if table.child("at_clause") != nil {
			c.refused.add(at, "AT reads another state of a table", "remove it")
		}
		return
	}
	if strings.ContainsAny(name, "./*") {
		c.refused.add(at, fmt.Sprintf("the file %q cannot be read: a job reads source only", name),
			"load it into a topic with kappactl dev load, and read that")
		return
	}
	for _, prefix := range []string{table.text("schema_name"), table.text("catalog_name")} {
		if prefix != "" {
			name = prefix + "." + name
		}
	}
	c.refused.add(at, fmt.Sprintf("the relation %q cannot be read: a job reads source only", name),
		"read FROM source, or a CTE over it")
}

func (c *compiler) join(table tree, at int) {
	unnests := false
	each(table, func(n tree) bool {
		unnests = unnests || (n.class() == classFunction && n.function() == "unnest")
		return true
	})
	if unnests {
		c.refused.add(at, "unnest as a joined relation cannot be computed in parts",
			"unnest in the select list of a subquery: FROM (SELECT *, unnest(items) AS item FROM source)")
		return
	}
	c.refused.add(at, "joins cannot be computed in parts: a record's row would depend on other records",
		"put the columns into the record when it is produced, or join the view when reading")
}

// above returns the kinds of modifiers that the outermost SELECT may have. Over an aggregation the view can order and
// limit its rows.
func (c *compiler) above() []string {
	rollup := len(c.node.list("group_expressions")) > 0 || c.node.text("aggregate_handling") == "FORCE_AGGREGATES" ||
		c.node.child("having") != nil
	for _, e := range c.node.list("select_list") {
		rollup = rollup || c.aggregates(e)
	}
	distinct := false
	for _, m := range c.node.list("modifiers") {
		distinct = distinct || m.kind() == modifierDistinct && len(m.list("distinct_on_targets")) == 0
	}
	switch {
	case rollup && distinct:
		return []string{modifierOrder, modifierLimit, modifierDistinct}
	case rollup:
		return []string{modifierOrder, modifierLimit}
	case distinct && len(c.spec.Serve.Key) == 0:
		return []string{modifierOrder, modifierLimit, modifierDistinct}
	}
	return []string{modifierOrder, modifierLimit}
}

// modifiers refuses clauses that depend on more than one row, except those allowed. what names the SELECT in the
// message.
func (c *compiler) modifiers(node tree, what string, allowed []string) {
	start := firstPlace(node)
	for _, m := range node.list("modifiers") {
		if slices.Contains(allowed, m.kind()) {
			continue
		}
		at := firstPlace(m)
		if at < 0 {
			at = start
		}
		switch m.kind() {
		case modifierDistinct:
			c.refused.add(at, "DISTINCT over "+what+" cannot be merged",
				c.distinctOn(node, m, "else add the columns to GROUP BY and select count(*)"))
		case modifierOrder:
			c.refused.add(at, "ORDER BY has no meaning in a table", "remove it, and order when reading the view")
		default:
			c.refused.add(at, "LIMIT depends on the other rows", "remove it, and limit when reading the view")
		}
	}
	if node.child("sample") != nil {
		c.refused.add(start, "a sample differs from run to run", "filter on the record instead: WHERE _offset % 10 = 0")
	}
	if q := node.child("qualify"); q != nil {
		c.refused.add(firstPlace(q), "QUALIFY filters by window functions, which need all rows",
			c.qualified(q, "else filter the view's columns with serve.where"))
	}
}
