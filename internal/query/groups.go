package query

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// groupKeys resolves every group expression to an item of the select list and returns which items are keys.
func (c *compiler) groupKeys(ctx context.Context, list []tree) ([]bool, error) {
	keys := make([]bool, len(list))
	groups := c.node.list("group_expressions")
	if c.node.text("aggregate_handling") == "FORCE_AGGREGATES" { // GROUP BY ALL
		for i, e := range list {
			keys[i] = e.class() != classStar && e.class() != classWindow && !c.aggregates(e)
		}
		return keys, nil
	}
	if len(groups) == 0 {
		return keys, nil
	}
	hidden, err := c.inputColumns(ctx)
	if err != nil {
		return nil, err
	}
	relation := relationName(c.node.child("from_table"))
	of := make([]tree, len(groups))
	for j, g := range groups {
		if i := c.boundItem(g, list, relation, hidden); i >= 0 {
			keys[i] = true
			of[j] = list[i]
			c.sameItems(list[i], list, relation, keys)
		} else if n := len(c.unselected); n > 0 {
			of[j] = g
		}
	}
	if !plainGrouping(c.node) && len(c.refused.problems) == 0 {
		return keys, c.takeSets(ctx, of)
	}
	return keys, nil
}

// sameItems marks the items that repeat a key's expression under another name.
func (c *compiler) sameItems(key tree, list []tree, relation string, keys []bool) {
	want := key.signature(relation)
	for i, e := range list {
		keys[i] = keys[i] || e.signature(relation) == want
	}
}

// boundItem returns the index of the item that a group expression refers to, or -1 if it was refused.
func (c *compiler) boundItem(g tree, list []tree, relation string, input map[string]bool) int {
	if n, ok := g.integer(); ok {
		if n < 1 || n > len(list) {
			c.refused.add(g.at(), fmt.Sprintf("GROUP BY %d: the select list has %d columns", n, len(list)),
				"write the number of a column, from 1")
			return -1
		}
		return c.keyItem(g, list, n-1)
	}
	want := g.signature(relation)
	for i, e := range list {
		if e.signature(relation) == want {
			return c.keyItem(g, list, i)
		}
	}
	if names := g.texts("column_names"); g.class() == classColumn && len(names) == 1 {
		for i, e := range list {
			if strings.EqualFold(e.alias(), names[0]) {
				if input[strings.ToLower(names[0])] {
					c.aliasTrap(g, names[0], i)
					return -1
				}
				return c.keyItem(g, list, i)
			}
		}
	}
	if g.class() == classConstant {
		c.refused.add(g.at(), "GROUP BY a constant does not group", "group by a column, its expression, or its number")
		return -1
	}
	c.unselectedKey(g, relation)
	return -1
}

// unselectedKey adds a group expression that is not in the select list as a hidden key.
func (c *compiler) unselectedKey(g tree, relation string) {
	want := g.signature(relation)
	for _, it := range c.unselected {
		if it.node.signature(relation) == want {
			return
		}
	}
	if c.aggregates(g) {
		c.refused.add(firstPlace(g), "GROUP BY names an aggregate", "group by columns of the record")
		return
	}
	e := g.clone()
	e["alias"] = ""
	c.expression(e, "")
	name := hiddenName("key", len(c.unselected)+1)
	if of := nameOf(g); of != "" && len(of) < job.MaxIdentifier {
		name = hiddenName(of, 0)
	}
	c.unselected = append(c.unselected, item{name: name, node: e, at: firstPlace(g), key: true, hidden: true})
}

// aliasTrap refuses SELECT lower(url) AS url … GROUP BY url: DuckDB groups by the column of source, not by the alias.
func (c *compiler) aliasTrap(g tree, name string, index int) {
	c.refused.add(g.at(), fmt.Sprintf("column %q: GROUP BY %s means the column of the input, not the expression with "+
		"that alias", name, name),
		fmt.Sprintf("give the expression another name, or write GROUP BY %d", index+1))
}

func (c *compiler) keyItem(g tree, list []tree, i int) int {
	if c.aggregates(list[i]) {
		c.refused.add(g.at(), "GROUP BY names an aggregate", "group by columns of the record")
		return -1
	}
	return i
}

// plainGrouping reports whether the GROUP BY is one set of all its expressions.
func plainGrouping(node tree) bool {
	sets, _ := node["group_sets"].([]any)
	groups := node.list("group_expressions")
	if len(sets) == 0 {
		return len(groups) == 0
	}
	first, _ := sets[0].([]any)
	return len(sets) == 1 && len(first) == len(groups)
}

func groupClause(node tree) tree {
	return tree{"group_expressions": node["group_expressions"]}
}

// relationName returns the name that qualifies columns of a FROM clause.
func relationName(from tree) string {
	if alias := from.alias(); alias != "" {
		return alias
	}
	return from.text("table_name")
}

// inputColumns returns the names that the FROM clause of the outermost SELECT offers, in lower case.
func (c *compiler) inputColumns(ctx context.Context) (map[string]bool, error) {
	names, err := c.inputNames(ctx)
	out := map[string]bool{}
	for _, name := range names {
		out[strings.ToLower(name)] = true
	}
	return out, err
}

// inputNames returns these names in their order.
func (c *compiler) inputNames(ctx context.Context) ([]string, error) {
	probe, err := c.session.parse(ctx, "SELECT * FROM "+SourceRelation)
	if err != nil {
		return nil, fmt.Errorf("read the columns of the input: %w", err)
	}
	node := probe[0].child("node")
	node["cte_map"] = cloneValue(c.node["cte_map"])
	node["from_table"] = cloneValue(c.node["from_table"])
	text, err := c.session.write(ctx, probe[0])
	if err != nil {
		return nil, err
	}
	columns, err := c.session.columns(ctx, text)
	if err != nil {
		if _, broken := classify(err); broken {
			return nil, errors.Join(fmt.Errorf("read the columns of the input: %w", err))
		}
		return nil, nil // bind reports the error with its place
	}
	return columnNames(columns), nil
}
