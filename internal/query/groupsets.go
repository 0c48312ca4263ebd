package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A query with ROLLUP, CUBE or GROUPING SETS has one more group key that readers do not see: GROUPING of all keys, the
// number of the set. Rows of different sets then have different keys, and merge like all others.

// takeSets reads the grouping sets. of is the expression of each term of the GROUP BY.
func (c *compiler) takeSets(ctx context.Context, of []tree) error {
	sets, _ := c.node["group_sets"].([]any)
	seen := map[string]bool{}
	for _, s := range sets {
		var set []tree
		var names []string
		members, _ := s.([]any)
		for _, m := range members {
			i, ok := asIndex(m, len(of))
			if !ok {
				return fmt.Errorf("read the grouping sets: term %v", m)
			}
			set, names = append(set, of[i]), append(names, of[i].signature(""))
		}
		slices.Sort(names)
		if key := strings.Join(slices.Compact(names), "\n"); seen[key] {
			c.refused.add(firstPlace(groupClause(c.node)), "the same grouping set is there twice", "remove one of them")
		} else {
			seen[key] = true
		}
		c.sets = append(c.sets, set)
	}
	names, with := make([]string, len(of)), map[string]tree{}
	for i, e := range of {
		names[i] = fmt.Sprintf("g%d", i)
		with[names[i]] = e
	}
	statements, err := c.session.parse(ctx, "SELECT GROUPING("+strings.Join(names, ", ")+")")
	if err != nil {
		return fmt.Errorf("parse the number of a grouping set: %w", err)
	}
	e := fill(statements[0].child("node").list("select_list")[0], with)
	c.unselected = append(c.unselected, item{
		name: hiddenName("grouping", 0), node: e, at: firstPlace(groupClause(c.node)), key: true, hidden: true,
		grouping: true,
	})
	return nil
}

// asIndex reads a number of a parse tree below limit.
func asIndex(v any, limit int) (int, bool) {
	for i := range limit {
		if fmt.Sprint(v) == fmt.Sprint(i) {
			return i, true
		}
	}
	return 0, false
}

// isGrouping reports whether a node is GROUPING(…).
func isGrouping(n tree) bool { return n.class() == classOperator && n.kind() == "GROUPING_FUNCTION" }

// groupingItem returns the name of the item with a GROUPING of the query. It adds a hidden one if there is none.
func (c *compiler) groupingItem(n tree) string {
	if i := c.keyOf(n); i >= 0 {
		return c.items[i].name
	}
	e := n.clone()
	e["alias"] = ""
	it := item{
		name: hiddenName("grouping", len(c.items)+1), node: e, at: placeOf(n), key: true, hidden: true, grouping: true,
	}
	c.items = append(c.items, it)
	return it.name
}

// groupSets returns the sets of a statement's GROUP BY. at is the number of each item among its terms.
func (c *compiler) groupSets(at map[int]int) []any {
	if len(at) == 0 {
		return []any{}
	}
	if c.sets == nil {
		var all []any
		for i := range len(at) {
			all = append(all, number(i))
		}
		return []any{all}
	}
	relation := relationName(c.node.child("from_table"))
	var out []any
	for _, s := range c.sets {
		set := []any{}
		for _, e := range s {
			want := e.signature(relation)
			for i, it := range c.items {
				if n, ok := at[i]; ok && it.node.signature(relation) == want && !slices.Contains(set, any(number(n))) {
					set = append(set, number(n))
				}
			}
		}
		out = append(out, set)
	}
	return out
}

// someRecords makes a statement with an empty grouping set return no row over no records, as the merged table.
func (c *compiler) someRecords(ctx context.Context, node tree) error {
	if c.sets == nil {
		return nil
	}
	statements, err := c.session.parse(ctx, "SELECT count(*) > 0")
	if err != nil {
		return fmt.Errorf("parse a condition: %w", err)
	}
	node["having"] = map[string]any(statements[0].child("node").list("select_list")[0])
	return nil
}
