package query

import (
	"context"
	"fmt"
	"strings"
)

// mergeable reports whether an aggregate function can be computed in parts.
func mergeable(name string) bool { return formOf(canonical(name)) != nil }

// canonical returns the preferred one of a function's equivalent names.
func canonical(name string) string {
	switch name {
	case "count_star":
		return "count"
	case "countif":
		return "count_if"
	case "mean":
		return "avg"
	case "arbitrary":
		return "first"
	case "argmin", "min_by":
		return "arg_min"
	case "argmax", "max_by":
		return "arg_max"
	case "variance":
		return "var_samp"
	case "stddev":
		return "stddev_samp"
	case "quantile":
		return "quantile_disc"
	case "array_agg":
		return "list"
	case "group_concat", "listagg":
		return "string_agg"
	default:
		return name
	}
}

// arguments returns the largest number of arguments of the aggregate; a call with more is refused.
func arguments(function string) int {
	switch function {
	case "arg_min", "arg_max":
		return 3
	case "arg_min_null", "arg_max_null", "covar_pop", "covar_samp", "corr", "regr_slope", "regr_r2", "approx_quantile",
		"quantile_cont", "quantile_disc", "string_agg", "min", "max":
		return 2
	}
	return 1
}

// aggregateCure returns what to use instead of an unsupported aggregate.
func aggregateCure(name string) string {
	switch name {
	case "every":
		return "write bool_and(x)"
	case "fsum", "kahan_sum", "sumkahan", "sum_no_overflow":
		return "use sum(x); cast x to DECIMAL for a total that is exact in any order"
	case "favg":
		return "use avg(x); cast x to DECIMAL for a mean that is exact in any order"
	case "product":
		return "of numbers above 0, select sum(ln(x)) FILTER (WHERE x > 0) and compute exp() in serve.columns; count the " +
			"others beside it"
	case "arg_min_nulls_last", "arg_max_nulls_last":
		return "use arg_min_null(x, y) or arg_max_null(x, y)"
	case "reservoir_quantile":
		return "write approx_quantile(x, 0.5), or quantile_disc(x, 0.5) with distinct_max"
	case "histogram_exact", "approx_top_k":
		return "write histogram(x) AS h with distinct_max and compute it from the counts in serve.columns, from " +
			"jsonb_each_text(h); " +
			"or add a rounded value, such as floor(x / 10) * 10 AS bucket, to GROUP BY and select count(*)"
	case "json_group_array":
		return "write list(x) with distinct_max, and to_jsonb() in serve.columns"
	case "bitstring_agg", "json_group_object", "json_group_structure":
		return "add the column to GROUP BY: one row per value"
	default:
		return "docs/queries.md lists the aggregates that can be merged: count, sum, avg, min, max, first, last, arg_max, " +
			"stddev and more, each with FILTER (WHERE …)"
	}
}

// shown returns a call of the function as people write it.
func shown(function string) string {
	if function == "count_star" {
		return "count(*)"
	}
	return function + "()"
}

// call is one aggregate of the select list.
type call struct {
	function string // canonical name
	node     tree
	form     *form
	distinct bool
	quantile float64  // of approx_quantile
	types    []string // of its arguments in DuckDB

	orders     []tree   // ORDER BY inside the call
	orderTypes []string // of its terms in DuckDB
	fractions  []fraction
	listed     bool              // the fractions are a list
	descending bool              // ranks count from the greatest value
	limit      int               // how many values are kept; 0: the function has no such argument
	separator  string            // of string_agg
	names      map[string]string // of its states, by suffix
}

// text returns the DuckDB text of a state for this call.
func (c call) text(p part) string {
	if len(c.node.list("children")) == 0 { // count(*)
		return "count(*)"
	}
	return p.value
}

// expand parses a form's text and inserts the arguments and the filter of a call.
func (c *compiler) expand(ctx context.Context, from *call, text string) (tree, error) {
	statements, err := c.session.parse(ctx, "SELECT "+text)
	if err != nil {
		return nil, fmt.Errorf("parse the form of %s: %w", from.function, err)
	}
	template := statements[0].child("node").list("select_list")[0]
	arguments := map[string]tree{}
	for i, child := range from.node.list("children") {
		arguments[[]string{"x", "y", "z"}[i]] = child
	}
	for i, o := range from.orders {
		arguments[fmt.Sprintf("o%d", i+1)] = o.child("expression")
	}
	filled := fill(template, arguments)
	if filter := from.node.child("filter"); filter != nil {
		both, err := c.session.parse(ctx, "SELECT x AND y")
		if err != nil {
			return nil, fmt.Errorf("parse the form of %s: %w", from.function, err)
		}
		c.filter(filled, filter, both[0].child("node").list("select_list")[0])
	}
	strip(filled)
	return filled, nil
}

// filter adds a filter to the aggregates in an expression.
func (c *compiler) filter(e, filter, both tree) {
	each(e, func(n tree) bool {
		if n.class() != classFunction || !c.functions.aggregate(n.function()) || c.functions[n.function()].scalar {
			return true
		}
		add := filter.clone()
		if own := n.child("filter"); own != nil {
			add = fill(both, map[string]tree{"x": add, "y": own})
		}
		n["filter"] = map[string]any(add)
		return false
	})
}

// finish returns the PostgreSQL text that computes the aggregate's value from its states in row s.
func (c call) finish() string {
	text := c.form.finish
	for suffix, name := range c.names {
		text = strings.ReplaceAll(text, "{"+suffix+"}", "s."+ident(name))
	}
	return text
}
