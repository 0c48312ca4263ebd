package query

import (
	"context"
	"strings"
)

// partial returns the statement that computes keys and states, with the hidden columns of source passed up to it.
func (c *compiler) partial(forms templates, states []*state, carried []tree) tree {
	out := c.statement.clone()
	node := out.child("node")
	list, groups, at := []any{}, []any{}, map[int]int{}
	for i, it := range c.items {
		if !it.key {
			continue
		}
		e := it.node.clone()
		e["alias"] = it.name
		list = append(list, map[string]any(e))
		if it.grouping {
			continue
		}
		position := forms.one.clone()
		position.child("value")["value"] = number(len(list))
		at[i] = len(groups)
		groups = append(groups, map[string]any(position))
	}
	carry(node, carried)
	for _, s := range states {
		e := s.value.clone()
		e["alias"] = s.name
		list = append(list, map[string]any(e))
	}
	node["select_list"], node["group_expressions"] = list, groups
	node["group_sets"], node["aggregate_handling"] = c.groupSets(at), "STANDARD_HANDLING"
	inline(node)
	strip(out)
	return out
}

// inline makes CTEs part of the single pass over the records.
func inline(node tree) {
	each(node, func(n tree) bool {
		for _, cte := range n.child("cte_map").list("map") {
			cte.child("value")["materialized"] = "CTE_MATERIALIZE_NEVER"
		}
		return true
	})
}

// carry makes every row-local step below node pass on hidden columns of source.
func carry(node tree, columns []tree) {
	if len(columns) == 0 {
		return
	}
	for _, cte := range node.child("cte_map").list("map") {
		carryStep(cte.child("value").child("query").child("node"), columns)
	}
	if from := node.child("from_table"); from.kind() == fromSubquery {
		carryStep(from.child("subquery").child("node"), columns)
	}
}

func carryStep(node tree, columns []tree) {
	carry(node, columns)
	relation := relationName(node.child("from_table"))
	for _, e := range node.list("select_list") {
		of := e.text("relation_name")
		if e.class() == classStar && (of == "" || strings.EqualFold(of, relation)) {
			return // it passes the columns on already
		}
	}
	list, _ := node["select_list"].([]any)
	for _, c := range columns {
		list = append(list, map[string]any(c.clone()))
	}
	node["select_list"] = list
}

// oracle returns the user's query. It writes aggregates as FINISH computes them where DuckDB rounds twice or is
// ambiguous.
func (c *compiler) oracle(ctx context.Context, carried []tree) (tree, error) {
	out := c.statement.clone()
	node := out.child("node")
	list, _ := node["select_list"].([]any)
	for i, it := range c.items {
		if it.call == nil {
			continue
		}
		text := it.call.form.oracle
		if text == "" {
			continue
		}
		e, err := c.expand(ctx, it.call, text)
		if err != nil {
			return nil, err
		}
		e["alias"] = it.name
		list[i] = map[string]any(e)
	}
	if err := c.someRecords(ctx, node); err != nil {
		return nil, err
	}
	carry(node, carried)
	inline(node)
	strip(out)
	return out, nil
}
