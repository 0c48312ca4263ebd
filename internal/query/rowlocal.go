package query

import (
	"fmt"
	"slices"
	"strings"
)

// rowLocal checks a SELECT below the aggregation: each of its rows must depend on only one input row.
func (c *compiler) rowLocal(node tree, visible scope) {
	if !c.selectOnly(node) {
		return
	}
	c.steps(node, visible)
	c.modifiers(node, "a subquery", nil)
	if node.child("having") != nil || len(node.list("group_expressions")) > 0 ||
		node.text("aggregate_handling") == "FORCE_AGGREGATES" {
		c.refused.add(firstPlace(node), "a subquery that aggregates cannot be computed in parts",
			"aggregate once, in the outermost SELECT")
		return
	}
	for _, e := range node.list("select_list") {
		c.projected(e)
	}
	if where := node.child("where_clause"); where != nil {
		c.expression(where, "")
	}
}

// projected checks one item of a row-local select list. In addition to what every expression may be, it may be a star
// or an unnest.
func (c *compiler) projected(e tree) {
	switch {
	case e.class() == classStar && !e.flag("columns"):
		for _, r := range e.list("replace_list") {
			if value := r.child("value"); value != nil {
				c.expression(value, "")
			}
		}
	case e.class() == classFunction && e.function() == "unnest":
		for _, child := range e.list("children") {
			c.expression(child, e.alias())
		}
	default:
		c.expression(e, e.alias())
	}
}

// expression checks a row-local expression. name is the output column it belongs to, or empty.
func (c *compiler) expression(e tree, name string) {
	each(e, func(n tree) bool { return c.allowed(n, name) })
}

// allowed checks one node of an expression and returns whether to descend. The list of node classes is closed.
func (c *compiler) allowed(n tree, name string) bool {
	switch n.class() {
	case "", classConstant, classCast, classCompare, classAnd, classCase, classBetween, classLambda:
		return true
	case classColumn:
		c.columnRef(n, name)
	case classFunction:
		return c.scalar(n, name)
	case classOperator:
		if n.kind() == "GROUPING_FUNCTION" {
			c.refused.add(placeOf(n), named(name, "GROUPING belongs to grouping sets"), "group by one set of columns")
			return false
		}
		return true
	case classWindow:
		cure := "aggregate with GROUP BY, and use window functions when reading the view"
		if slices.Contains([]string{"row_number", "rank", "dense_rank", "first_value"}, n.function()) {
			other := "else " + cure
			cure = latestCure + other
			if n.function() == "row_number" {
				lines := c.latestLines("remove row_number and its condition", n.list("partitions"), n.list("orders"), "")
				cure = "for the first row of each key " + strings.TrimSuffix(lines, "; ") +
					"; for the first n values of it write arg_max(x, y, n) and GROUP BY"
			}
			if n.function() == "row_number" && len(n.list("partitions")) == 0 {
				cure = latestCure + other
			}
		}
		c.refused.add(placeOf(n), named(name,
			fmt.Sprintf("the window function %s needs rows of other records", n.function())), cure)
	case classSubquery:
		c.refused.add(placeOf(n), named(name, "a subquery in an expression cannot be computed in parts"),
			"put the values into the record, or write them as a list: x IN ('a', 'b')")
	case classStar:
		c.refused.add(placeOf(n), named(name, "a star or COLUMNS(…) in an expression is not supported"), "name the columns")
	case classCollate:
		c.refused.add(placeOf(n), named(name, fmt.Sprintf("the collation %q is not the order of bytes", n.text("collation"))),
			"compare lower(x), or remove COLLATE")
		return false
	case classPosition:
		c.refused.add(placeOf(n), named(name, "positional column references are not supported"), "name the column")
	case classParameter: // reported once for the statement
	case classDefault:
		c.refused.add(placeOf(n), named(name, "DEFAULT has no meaning here"), "write the value")
	default:
		c.refused.add(placeOf(n), named(name, "this expression is not supported ("+strings.ToLower(n.class())+")"),
			"write it with functions, operators, CASE and casts")
	}
	return false
}

// columnRef refuses the functions that SQL writes like columns.
func (c *compiler) columnRef(n tree, name string) {
	names := n.texts("column_names")
	if len(names) != 1 || !bareKeyword(strings.ToLower(names[0])) || c.declared(names[0]) {
		return
	}
	word := strings.ToLower(names[0])
	cure, _ := denied(word)
	c.refused.add(placeOf(n), named(name, word+" differs from run to run"), cure)
}

func (c *compiler) declared(name string) bool {
	for _, col := range c.source {
		if strings.EqualFold(col.name, name) {
			return true
		}
	}
	return false
}

// scalar checks a function call in a row-local expression.
func (c *compiler) scalar(n tree, name string) bool {
	f := n.function()
	if cure, is := deniedCall(f, len(n.list("children"))); is {
		c.refused.add(placeOf(n), named(name, shown(f)+" depends on more than the record"), cure)
		return false
	}
	switch {
	case f == "unnest":
		c.refused.add(placeOf(n), named(name, "unnest is only supported as a column of a subquery"),
			"FROM (SELECT *, unnest(items) AS item FROM source)")
		return false
	case c.functions.aggregate(f) && !c.functions[f].scalar:
		c.refused.add(placeOf(n), named(name, "the aggregate "+shown(f)+" is used where a value of one record is required"),
			"aggregate in the select list of the outermost SELECT only")
		return false
	case c.functions[f] != nil && c.functions[f].unstable:
		c.refused.add(placeOf(n), named(name, shown(f)+" is not deterministic"), cureRecord)
		return false
	}
	return true
}
