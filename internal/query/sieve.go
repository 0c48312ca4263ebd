package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Sieve finds all records over which DuckDB raises an error in one statement, each with the number of the failing
// expression. Halving a batch until such a record is alone takes one statement per step.
type Sieve struct {
	SQL    string   // returns topic, partition, offset and the number as texts, over relation source
	Fields []string // of source
}

// sieve builds the Sieve of a query that reads source itself; nil for other queries. It filters records like the
// query's WHERE and tries each expression of the select list, of a key or inside an aggregate separately over the
// remaining records. It does not find failures of WHERE itself, of a FILTER or of a guard of Land. passed is the
// statement of the query with its WHERE.
func (c *compiler) sieve(ctx context.Context, out *Compiled, passed tree) (*Sieve, error) {
	tried, ok := c.tried(passed)
	if !ok {
		return nil, nil
	}
	with, cases := map[string]tree{}, ""
	for i, e := range tried {
		name := fmt.Sprintf("_kappactl_x%d", i)
		with[name] = e
		cases += fmt.Sprintf(" WHEN TRY(%s IS NULL) IS NULL THEN '%d'", name, i)
	}
	const places = "CAST(_topic AS VARCHAR) AS topic, CAST(_partition AS VARCHAR) AS partition, CAST(_offset AS " +
		"VARCHAR) AS \"offset\""
	template, err := c.session.parse(ctx, fmt.Sprintf("SELECT %s, CASE%s END AS which", places, cases))
	if err != nil {
		return nil, fmt.Errorf("parse the sieve: %w", err)
	}
	statement := passed.clone()
	node := statement.child("node")
	var list []any
	for _, e := range template[0].child("node").list("select_list") {
		filled := fill(e, with)
		filled["alias"] = e.alias()
		list = append(list, map[string]any(filled))
	}
	node["select_list"], node["group_expressions"], node["group_sets"] = list, []any{}, []any{}
	node["aggregate_handling"] = "STANDARD_HANDLING"
	strip(statement)
	text, err := c.session.write(ctx, statement)
	if err != nil {
		return nil, err
	}
	s := &Sieve{
		SQL:    out.prelude() + "SELECT topic, partition, \"offset\", which FROM (" + text + ") AS q WHERE which IS NOT NULL",
		Fields: slices.Clone(out.Fields),
	}
	for _, f := range []string{"_topic", partitionColumn, "_offset"} {
		if !slices.Contains(s.Fields, f) {
			s.Fields = append(s.Fields, f)
		}
	}
	return s, nil
}

// tried returns the expressions that the query computes for each record; false if some of them cannot be tried
// separately.
func (c *compiler) tried(statement tree) ([]tree, bool) {
	node := statement.child("node")
	from := node.child("from_table")
	if from.kind() != fromTable || !strings.EqualFold(from.text("table_name"), SourceRelation) ||
		len(from.texts("column_name_alias")) > 0 ||
		len(node.child("cte_map").list("map")) > 0 {
		return nil, false
	}
	var out []tree
	for _, it := range c.items {
		switch {
		case it.grouping:
		case it.call == nil:
			out = append(out, it.node)
		case it.call.node.child("filter") != nil:
			return nil, false
		default:
			out = append(out, it.call.node.list("children")...)
		}
	}
	out = slices.DeleteFunc(slices.Clone(out), func(e tree) bool {
		return e.class() == classColumn || e.class() == classConstant || e.class() == classStar
	})
	simple := len(out) > 0
	for i, e := range out {
		e = e.clone()
		e["alias"] = ""
		out[i] = e
		each(e, func(n tree) bool {
			simple = simple && n.class() != classSubquery && n.class() != classWindow
			return true
		})
	}
	return out, simple
}
