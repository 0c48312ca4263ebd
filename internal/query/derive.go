package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// derive builds PARTIAL, MERGE and FINISH of a query that passed.
func (c *compiler) derive(ctx context.Context) (*Compiled, error) {
	forms, err := c.templates(ctx)
	if err != nil {
		return nil, err
	}
	states := c.states(forms)
	out := &Compiled{Fields: c.fields(), source: c.source}
	if out.Partial, err = c.session.write(ctx, c.partial(forms, states, false)); err != nil {
		return nil, err
	}
	if out.laned, err = c.session.write(ctx, c.partial(forms, states, true)); err != nil {
		return nil, err
	}
	if err := c.typeStates(ctx, out.Partial, states); err != nil {
		return nil, err
	}
	if out.Oracle, err = c.session.write(ctx, c.oracle(forms, states)); err != nil {
		return nil, err
	}
	if prelude := out.prelude(1); prelude != "" {
		out.Oracle = prelude + "SELECT * FROM (" + out.Oracle + ")"
	}
	out.Layout, out.outputs = c.layout(states), c.outputs(states)
	return out, nil
}

// templates are parse trees to put other nodes into.
type templates struct {
	zero     tree // coalesce(x, 0)
	quotient tree // x, rounded once to DOUBLE, divided by y
	one      tree
	lane     tree
}

func (c *compiler) templates(ctx context.Context) (templates, error) {
	text := fmt.Sprintf("SELECT coalesce(x, 0), CAST(CAST(x AS VARCHAR) AS DOUBLE) / y, 1, %s", ident(laneAlias))
	statements, err := c.session.parse(ctx, text)
	if err != nil {
		return templates{}, fmt.Errorf("parse templates: %w", err)
	}
	list := statements[0].child("node").list("select_list")
	return templates{zero: list[0], quotient: list[1], one: list[2], lane: list[3]}, nil
}

// fill copies a template with its columns x and y replaced.
func fill(template tree, with map[string]tree) tree {
	out := tree{"e": cloneValue(map[string]any(template))}
	replaceColumns(map[string]any(out), with)
	filled := out.child("e")
	strip(filled)
	return filled
}

func replaceColumns(v any, with map[string]tree) {
	swap := func(x any) any {
		if n := asTree(x); n != nil && n.class() == classColumn {
			if r, ok := with[n.texts("column_names")[0]]; ok {
				return map[string]any(r.clone())
			}
		}
		replaceColumns(x, with)
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

// strip removes places, which belong to another text.
func strip(v tree) {
	each(v, func(n tree) bool {
		if _, ok := n["query_location"]; ok {
			n["query_location"] = json.Number("18446744073709551615")
		}
		return true
	})
}

// states gives every aggregate its states; equal states of two aggregates are stored once.
func (c *compiler) states(forms templates) []*state {
	var out []*state
	var outputs []string
	for _, it := range c.items {
		outputs = append(outputs, it.name)
	}
	free := takenNames(outputs...)
	relation := relationName(c.node.child("from_table"))
	known := map[string]*state{}
	add := func(name func() string, m merge, value tree) string {
		sig := string(m) + value.signature(relation)
		if s := known[sig]; s != nil {
			return s.name
		}
		s := &state{name: name(), value: value, merge: m}
		known[sig] = s
		out = append(out, s)
		return s.name
	}
	for i := range c.items {
		it := &c.items[i]
		if it.call == nil {
			continue
		}
		own := func() string { return it.name }
		suffixed := func(suffix string) func() string {
			return func() string { return free.stored(it.name, suffix, i+1) }
		}
		switch it.call.function {
		case "count":
			it.call.count = add(own, mergeSum, as(it.node, it.node.function()))
		case "sum", "avg":
			total := fill(forms.zero, map[string]tree{"x": as(it.node, "sum")})
			it.call.sum = add(suffixed("__s"), mergeSum, total)
			it.call.count = add(suffixed("__n"), mergeSum, as(it.node, "count"))
		case "min":
			it.call.value = add(own, mergeMin, as(it.node, "min"))
		default:
			it.call.value = add(own, mergeMax, as(it.node, "max"))
		}
	}
	return out
}

// partial is the statement that computes keys and states; laned adds the record's lane as one more key.
func (c *compiler) partial(forms templates, states []*state, laned bool) tree {
	out := c.statement.clone()
	node := out.child("node")
	var list, groups, set []any
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
	for _, cte := range node.child("cte_map").list("map") {
		cte.child("value")["materialized"] = "CTE_MATERIALIZE_NEVER"
	}
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

// find is the state of a name.
func find(states []*state, name string) *state {
	i := slices.IndexFunc(states, func(s *state) bool { return s.name == name })
	if i < 0 {
		return &state{}
	}
	return states[i]
}

// exact says that a total does not depend on the order of its records.
func exact(states []*state, name string) bool { return find(states, name).pg == "numeric" }

// typeStates reads the types of the states from PARTIAL.
func (c *compiler) typeStates(ctx context.Context, partial string, states []*state) error {
	described, err := c.session.columns(ctx, partial)
	if err != nil {
		return fmt.Errorf("describe PARTIAL: %w", err)
	}
	rest := described[len(described)-len(states):]
	for i, s := range states {
		s.duck = rest[i].typ
		s.pg, _ = resultType(s.duck)
		if s.merge == mergeSum && strings.HasPrefix(s.pg, "numeric") {
			s.pg = "numeric" // totals outgrow the precision of their parts
		}
	}
	return nil
}

// typeItems reads the types of the outputs from the user's query, and refuses what PostgreSQL cannot hold.
func (c *compiler) typeItems(ctx context.Context) error {
	text, err := c.session.write(ctx, c.statement)
	if err != nil {
		return err
	}
	outputs, err := c.session.columns(ctx, text)
	if err != nil {
		return fmt.Errorf("describe the query: %w", err)
	}
	if len(outputs) != len(c.items) {
		return errors.New("describe the query: the number of columns differs from the select list")
	}
	for i := range c.items {
		c.items[i].duck = outputs[i].typ
		c.typeItem(&c.items[i])
	}
	return nil
}

// typeItem finds the PostgreSQL type of an output column, or refuses it.
func (c *compiler) typeItem(it *item) {
	pg, ok := resultType(it.duck)
	if !ok {
		c.refused.add(it.at, named(it.name, "PostgreSQL has no type for "+it.duck), typeCure(it.duck))
		return
	}
	it.pg = pg
	if it.key {
		if cause, cure := keyProblem(it.duck, pg); cause != "" {
			c.refused.add(it.at, named(it.name, cause), cure)
		}
		return
	}
	switch it.call.function {
	case "sum":
		if strings.HasPrefix(pg, "numeric") {
			it.pg = "numeric"
		}
	case "avg":
		if it.duck != "DOUBLE" {
			c.refused.add(it.at, named(it.name, "avg of "+it.duck+" cannot be merged"), "average a number, such as epoch(x), and convert it in serve.columns")
		}
	case "min", "max":
		if !comparable(it.duck, pg) {
			c.refused.add(it.at, named(it.name, it.call.function+" of "+it.duck+" has another order in PostgreSQL"), "compare a number, a text or a time taken from it")
		}
	}
}

// outputs are the stored columns of PARTIAL with their DuckDB types: keys in the order of the query, then states.
func (c *compiler) outputs(states []*state) []column {
	var out []column
	for _, it := range c.items {
		if it.key {
			out = append(out, column{it.name, it.duck})
		}
	}
	for _, s := range states {
		out = append(out, column{s.name, s.duck})
	}
	return out
}

// layout is the stored form.
func (c *compiler) layout(states []*state) job.Layout {
	l := job.Layout{Shape: job.Rollup, Where: c.spec.Serve.Where}
	for _, it := range c.items {
		if it.key {
			l.Keys = append(l.Keys, job.KeyColumn{Name: it.name, Type: stored(it.pg), Time: timeKey(it.pg)})
		}
		l.View = append(l.View, c.viewColumn(it, states))
	}
	slices.SortStableFunc(l.Keys, func(a, b job.KeyColumn) int {
		switch {
		case a.Time == b.Time:
			return 0
		case a.Time:
			return -1
		default:
			return 1
		}
	})
	for _, s := range states {
		l.States = append(l.States, job.StateColumn{Name: s.name, Type: stored(s.pg), Combine: s.combine(), Aggregate: s.aggregate()})
	}
	l.View = append(l.View, c.computed(l)...)
	c.checkServe(l)
	return l
}

func (c *compiler) viewColumn(it item, states []*state) job.ViewColumn {
	if it.key {
		return job.ViewColumn{Name: it.name, Type: it.pg, Finish: "s." + ident(it.name), StoredAs: "key", Exact: true, Key: true}
	}
	isExact := true
	if it.call.sum != "" {
		isExact = exact(states, it.call.sum)
	}
	return job.ViewColumn{
		Name: it.name, Type: it.pg, StoredAs: it.call.storedAs(), Exact: isExact,
		Finish: it.call.finish(find(states, it.call.sum).pg),
	}
}
