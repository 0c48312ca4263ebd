package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// outer is what a query computes above its aggregation: expressions over aggregates and keys, HAVING, and ORDER BY with
// LIMIT. The aggregation itself is the inner statement: its select list is the items, some of which readers do not see.
// Expressions name the columns of the inner statement.
type outer struct {
	columns   []outerColumn // the select list of the query
	having    tree          // nil: none
	condition tree          // HAVING as written
	orders    []outerOrder
	limit     string     // LIMIT and OFFSET; empty: none
	consts    []constant // constant parts of the expressions
	terms     map[string]term
}

// outerColumn is one column of the query: an item of the inner statement, or an expression over items.
type outerColumn struct {
	name  string
	at    int
	item  int  // index of the item; -1 for an expression
	node  tree // of an expression
	asked tree // the expression as written
	value term
	pg    string // PostgreSQL type
}

// outerOrder is one term of ORDER BY.
type outerOrder struct {
	node  tree
	how   string // DESC NULLS LAST
	value term
}

// constant is an expression without columns, which DuckDB evaluates once.
type constant struct {
	name string
	node tree
}

// asked returns the select list as the user wrote it.
func (c *compiler) asked() []tree {
	if c.written != nil {
		return c.written
	}
	return c.node.list("select_list")
}

// nameOf returns the alias of a select item, or the name of its column.
func nameOf(e tree) string {
	if name := e.alias(); name != "" || e.class() != classColumn {
		return name
	}
	names := e.texts("column_names")
	return names[len(names)-1]
}

// expressions takes the parts of the query that are computed from aggregates and keys, and reduces the statement to the
// inner one. It changes nothing if the query is a plain list of keys and aggregates.
func (c *compiler) expressions(ctx context.Context, columns []outerColumn) error {
	having, modifiers := c.node.child("having"), c.node.list("modifiers")
	plain := having == nil && len(modifiers) == 0 &&
		slices.ContainsFunc(c.items, func(it item) bool { return it.call != nil })
	for _, col := range columns {
		plain = plain && col.item >= 0
	}
	plain = plain && !slices.ContainsFunc(c.items, func(it item) bool { return it.hidden })
	if plain || len(c.refused.problems) > 0 {
		return nil
	}
	c.outer, c.written = &outer{columns: columns}, c.node.list("select_list")
	for i, col := range columns {
		if col.item < 0 {
			c.outer.columns[i].asked = col.node
			c.liftColumn(&c.outer.columns[i])
		}
	}
	if having != nil {
		c.outer.having, c.outer.condition = c.lift(having, havingName), having
	}
	c.takeOrder(modifiers)
	if !slices.ContainsFunc(c.items, func(it item) bool { return it.call != nil }) {
		if err := c.countRecords(ctx); err != nil {
			return err
		}
	}
	return c.reduce(ctx)
}

// countRecords adds a hidden count: each row of a version table has a state.
func (c *compiler) countRecords(ctx context.Context) error {
	statements, err := c.session.parse(ctx, "SELECT count(*)")
	if err != nil {
		return fmt.Errorf("parse a count: %w", err)
	}
	e := statements[0].child("node").list("select_list")[0]
	strip(e)
	c.items = append(c.items, item{name: hiddenName("records", 0), node: e, hidden: true, call: c.takeCall(e, "")})
	return nil
}

// hiddenName returns the name of a column that readers do not see. Names of the query do not begin with _.
func hiddenName(of string, n int) string {
	if n == 0 {
		return "_" + of
	}
	return fmt.Sprintf("_%s_%d", of, n)
}

// liftColumn takes a select item that is neither a key nor an aggregate.
func (c *compiler) liftColumn(col *outerColumn) {
	if c.keysOnly(col.node, 0) { // a function of keys is one more key
		e := c.spelled(col.node, 0)
		e["alias"] = ""
		col.item = len(c.items)
		c.items = append(c.items, item{name: col.name, node: e, at: col.at, key: true, derived: true})
		c.expression(e, col.name)
		return
	}
	col.node = c.lift(col.node, col.name)
}

// reduce makes the statement the inner one: its select list is the items.
func (c *compiler) reduce(ctx context.Context) error {
	forms, err := c.templates(ctx)
	if err != nil {
		return err
	}
	list, groups, at := []any{}, []any{}, map[int]int{}
	for i, it := range c.items {
		e := it.node.clone()
		e["alias"] = it.name
		c.items[i].node = e
		list = append(list, map[string]any(e))
		if it.key && !it.grouping {
			position := forms.one.clone()
			strip(position)
			position.child("value")["value"] = number(i + 1)
			at[i] = len(groups)
			groups = append(groups, map[string]any(position))
		}
	}
	c.node["select_list"], c.node["group_expressions"], c.node["group_sets"] = list, groups, c.groupSets(at)
	c.node["aggregate_handling"], c.node["having"], c.node["modifiers"] = "STANDARD_HANDLING", nil, []any{}
	return nil
}

// maxLift is how many aliases may refer to one another.
const maxLift = 16

// lift returns an expression over the columns of the inner statement. It adds the aggregates in it as hidden items.
// name is the column that it belongs to.
func (c *compiler) lift(e tree, name string) tree {
	out := asTree(c.lifted(map[string]any(e), name, 0))
	return out
}

func (c *compiler) lifted(v any, name string, depth int) any {
	switch v := v.(type) {
	case tree:
		return c.lifted(map[string]any(v), name, depth)
	case map[string]any:
		if n := tree(v); n.class() != "" {
			if r := c.resolved(n, name, depth); r != nil {
				return map[string]any(r)
			}
		}
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = c.lifted(x, name, depth)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = c.lifted(x, name, depth)
		}
		return out
	default:
		return v
	}
}

// resolved returns the column of the inner statement that a node is, or nil if its parts have to be taken one by one.
func (c *compiler) resolved(n tree, name string, depth int) tree {
	if i := c.keyOf(n); i >= 0 {
		return reference(c.items[i].name, n)
	}
	if isGrouping(n) && c.sets != nil {
		return reference(c.groupingItem(n), n)
	}
	switch n.class() {
	case classConstant:
		return n
	case classColumn:
		if e := c.aliased(n); e != nil && depth < maxLift {
			return asTree(c.lifted(map[string]any(e), name, depth+1))
		}
		c.refused.add(placeOf(n), named(name, fmt.Sprintf("%q is neither a group key nor inside an aggregate", nameOf(n))),
			"add it to GROUP BY, or aggregate it: min(x)")
		return n
	case classWindow, classSubquery, classStar, classCollate, classPosition, classDefault, classParameter, classLambda:
		if !c.keysOnly(n, depth) {
			c.unliftable(n, name)
			return n
		}
	}
	if n.class() == classFunction && c.functions[n.function()] == nil && !streamWindow(n.function()) {
		c.unknownFunction(n, name)
		return n
	}
	if n.class() == classFunction && c.aggregate(n) {
		return reference(c.aggregateItem(n, name), n)
	}
	if c.aggregates(n) {
		return nil
	}
	switch {
	case c.keysOnly(n, depth):
		return reference(c.keyItemOf(n, name, depth), n)
	case constantOnly(n):
		c.expression(n, name)
		c.outer.consts = append(c.outer.consts, constant{hiddenName("constant", len(c.outer.consts)+1), n.clone()})
		return reference(c.outer.consts[len(c.outer.consts)-1].name, n)
	}
	return nil
}

// unliftable refuses a node that cannot be computed over aggregates.
func (c *compiler) unliftable(n tree, name string) {
	before := len(c.refused.problems)
	c.allowed(n, name)
	if len(c.refused.problems) == before {
		c.refused.add(placeOf(n), named(name, "this cannot be computed from aggregates ("+strings.ToLower(n.class())+")"),
			"select the aggregates, and compute it in serve.columns")
	}
}

// aggregate reports whether a FUNCTION node calls an aggregate.
func (c *compiler) aggregate(n tree) bool {
	f := n.function()
	return c.functions.aggregate(f) && !c.functions[f].scalar
}

// reference returns a column of the inner statement at the place of n.
func reference(name string, n tree) tree {
	return tree{
		"class": classColumn, "type": "COLUMN_REF", "alias": "", "query_location": n["query_location"],
		"column_names": []any{name},
	}
}

// keyOf returns the index of the group key with this expression, or -1.
func (c *compiler) keyOf(n tree) int {
	if n.class() == classConstant {
		return -1
	}
	relation := relationName(c.node.child("from_table"))
	want := n.signature(relation)
	return slices.IndexFunc(c.items, func(it item) bool { return it.key && it.node.signature(relation) == want })
}

// aliased returns the select item that a column names by its alias, or nil.
func (c *compiler) aliased(n tree) tree {
	names := n.texts("column_names")
	if len(names) != 1 {
		return nil
	}
	for _, e := range c.asked() {
		if strings.EqualFold(e.alias(), names[0]) && e.signature("") != n.signature("") {
			return e
		}
	}
	return nil
}

// keysOnly reports whether an expression has columns and all of them are group keys.
func (c *compiler) keysOnly(e tree, depth int) bool {
	found, only := false, depth < maxLift && c.sets == nil // in some grouping sets keys are NULL
	each(e, func(n tree) bool {
		switch {
		case n.class() == "" || !only:
			return only
		case c.keyOf(n) >= 0:
			found = true
			return false
		case n.class() == classWindow || n.class() == classSubquery || n.class() == classStar,
			n.class() == classFunction && c.aggregate(n):
			only = false
		case n.class() == classColumn:
			if of := c.aliased(n); of == nil || !c.keysOnly(of, depth+1) {
				only = false
			} else {
				found = true
			}
		}
		return only
	})
	return found && only
}

// constantOnly reports whether an expression reads no column and calls no aggregate.
func constantOnly(e tree) bool {
	only := true
	each(e, func(n tree) bool {
		switch n.class() {
		case classColumn, classWindow, classSubquery, classStar, classLambda, classParameter, classPosition, classDefault:
			only = false
		}
		return only
	})
	return only
}

// spelled returns an expression with the aliases in it replaced by what they name.
func (c *compiler) spelled(e tree, depth int) tree {
	out := tree{"e": cloneValue(map[string]any(e))}
	c.spell(map[string]any(out), depth)
	return out.child("e")
}

func (c *compiler) spell(v any, depth int) {
	swap := func(x any) any {
		if n := asTree(x); n != nil && n.class() == classColumn && c.keyOf(n) < 0 && depth < maxLift {
			if of := c.aliased(n); of != nil {
				r := c.spelled(of, depth+1)
				r["alias"] = ""
				return map[string]any(r)
			}
		}
		c.spell(x, depth)
		return x
	}
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = swap(x)
		}
	case []any:
		for i, x := range v {
			v[i] = swap(x)
		}
	}
}

// keyItemOf returns the name of the hidden key that holds a function of keys.
func (c *compiler) keyItemOf(n tree, name string, depth int) string {
	e := c.spelled(n, depth)
	e["alias"] = ""
	if i := c.keyOf(e); i >= 0 {
		return c.items[i].name
	}
	c.expression(e, name)
	it := item{name: hiddenName("key", len(c.items)+1), node: e, at: placeOf(n), key: true, derived: true, hidden: true}
	c.items = append(c.items, it)
	return it.name
}

// aggregateItem returns the name of the item with this aggregate. It adds a hidden one if there is none.
func (c *compiler) aggregateItem(n tree, name string) string {
	relation := relationName(c.node.child("from_table"))
	want := n.signature(relation)
	for _, it := range c.items {
		if it.call != nil && it.node.signature(relation) == want {
			return it.name
		}
	}
	e := n.clone()
	e["alias"] = ""
	it := item{
		name: hiddenName(n.function(), len(c.items)+1), node: e, at: placeOf(n), hidden: true,
		call: c.takeCall(e, name),
	}
	c.items = append(c.items, it)
	return it.name
}
