package query

import (
	"encoding/json"
	"fmt"
	"strings"
)

// partial is the statement that computes keys and states; laned adds the record's lane as one more key.
func (c *compiler) partial(forms templates, states []*state, laned bool) tree {
	out := c.statement.clone()
	node := out.child("node")
	list, groups, set := []any{}, []any{}, []any{}
	key := func(e tree) {
		list = append(list, map[string]any(e))
		position := forms.one.clone()
		position.child("value")["value"] = json.Number(fmt.Sprint(len(list)))
		groups = append(groups, map[string]any(position))
		set = append(set, json.Number(fmt.Sprint(len(set))))
	}
	for _, it := range c.items {
		if it.key {
			e := it.node.clone()
			e["alias"] = it.name
			key(e)
		}
	}
	if laned {
		carryLane(node, forms.lane)
		key(forms.lane.clone())
	}
	for _, s := range states {
		e := s.value.clone()
		e["alias"] = s.name
		list = append(list, map[string]any(e))
	}
	node["select_list"], node["group_expressions"] = list, groups
	node["group_sets"], node["aggregate_handling"] = []any{}, "STANDARD_HANDLING"
	if len(groups) > 0 {
		node["group_sets"] = []any{set}
	}
	inline(node)
	strip(out)
	return out
}

// inline makes CTEs part of the one pass over the records.
func inline(node tree) {
	each(node, func(n tree) bool {
		for _, cte := range n.child("cte_map").list("map") {
			cte.child("value")["materialized"] = "CTE_MATERIALIZE_NEVER"
		}
		return true
	})
}

// carryLane makes every row-local step below node hand on the lane column of source.
func carryLane(node, lane tree) {
	for _, cte := range node.child("cte_map").list("map") {
		laneStep(cte.child("value").child("query").child("node"), lane)
	}
	if from := node.child("from_table"); from.kind() == fromSubquery {
		laneStep(from.child("subquery").child("node"), lane)
	}
}

func laneStep(node, lane tree) {
	carryLane(node, lane)
	relation := relationName(node.child("from_table"))
	for _, e := range node.list("select_list") {
		of := e.text("relation_name")
		if e.class() == classStar && (of == "" || strings.EqualFold(of, relation)) {
			return // it hands the column on already
		}
	}
	list, _ := node["select_list"].([]any)
	node["select_list"] = append(list, map[string]any(lane.clone()))
}

// oracle is the user's query with the exact averages written as FINISH computes them.
func (c *compiler) oracle(forms templates, states []*state) tree {
	out := c.statement.clone()
	node := out.child("node")
	list, _ := node["select_list"].([]any)
	for i, it := range c.items {
		if it.call != nil && it.call.function == "avg" && exact(states, it.call.sum) {
			e := fill(forms.quotient, map[string]tree{"x": as(it.node, "sum"), "y": as(it.node, "count")})
			e["alias"] = it.name
			list[i] = map[string]any(e)
		}
	}
	inline(node)
	strip(out)
	return out
}
