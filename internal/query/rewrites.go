package query

import (
	"context"
	"fmt"
	"strings"
)

// rewrites are aggregates that are other aggregates, or computed from them. x and y are the arguments by position.
var rewrites = map[string]struct {
	arguments int
	text      string
}{
	"regr_avgx":  {2, "avg(y) FILTER (WHERE x IS NOT NULL)"},
	"regr_avgy":  {2, "avg(x) FILTER (WHERE y IS NOT NULL)"},
	"regr_count": {2, "count(*) FILTER (WHERE x IS NOT NULL AND y IS NOT NULL)"},
	"regr_sxx":   {2, "var_pop(y) FILTER (WHERE x IS NOT NULL) * count(y) FILTER (WHERE x IS NOT NULL)"},
	"regr_syy":   {2, "var_pop(x) FILTER (WHERE y IS NOT NULL) * count(x) FILTER (WHERE y IS NOT NULL)"},
	"regr_sxy":   {2, "covar_pop(x, y) * count(*) FILTER (WHERE x IS NOT NULL AND y IS NOT NULL)"},
	"regr_intercept": {2, "avg(x) FILTER (WHERE y IS NOT NULL) - nullif(regr_slope(x, y), CAST('nan' AS DOUBLE)) * " +
		"avg(y) FILTER (WHERE x IS NOT NULL)"},
	"geomean":        {1, "exp(avg(ln(x)))"},
	"geometric_mean": {1, "exp(avg(ln(x)))"},
	"wavg":           {2, "sum(x * y) / sum(CASE WHEN x IS NOT NULL THEN y ELSE 0 END)"},
	"weighted_avg":   {2, "sum(x * y) / sum(CASE WHEN x IS NOT NULL THEN y ELSE 0 END)"},
	"sem":            {1, "stddev_pop(x) / sqrt(count(x))"},
}

// sortedLists writes list_sort(list(x)), as which DuckDB parses list(DISTINCT x ORDER BY x), as a list in order.
func sortedLists(n tree) {
	children := n.list("children")
	if n.class() != classFunction || n.function() != "list_sort" || len(children) == 0 {
		return
	}
	list := children[0]
	arguments := list.list("children")
	if list.class() != classFunction || canonical(list.function()) != "list" || len(arguments) != 1 ||
		len(list.child("order_bys").list("orders")) > 0 {
		return
	}
	order := map[string]any{
		"expression": cloneValue(map[string]any(arguments[0])), "type": "ORDER_DEFAULT",
		"null_order": "ORDER_DEFAULT",
	}
	for _, c := range children[1:] {
		switch word := strings.ToUpper(c.child("value").text("value")); word {
		case "DESC", "DESCENDING":
			order["type"] = "DESCENDING"
		case "NULLS FIRST", "NULLS_FIRST":
			order["null_order"] = "NULLS FIRST"
		case "ASC", "ASCENDING", "ORDER_DEFAULT", "NULLS LAST", "NULLS_LAST":
		default:
			return
		}
	}
	alias, at := n["alias"], arguments[0]["query_location"]
	list.child("order_bys")["orders"] = []any{order}
	clear(n)
	for k, v := range list {
		n[k] = v
	}
	n["alias"], n["query_location"] = alias, at
}

// rewriteAggregates replaces calls of these aggregates in the outermost SELECT.
func (c *compiler) rewriteAggregates(ctx context.Context) error {
	var err error
	for _, key := range []string{"select_list", "having", "modifiers"} {
		each(c.node[key], func(n tree) bool {
			sortedLists(n)
			r, ok := rewrites[n.function()]
			if n.class() != classFunction || !ok || len(n.list("children")) != r.arguments || n.flag("distinct") || err != nil {
				return true
			}
			err = c.rewrite(ctx, n, r.text)
			return false
		})
	}
	return err
}

func (c *compiler) rewrite(ctx context.Context, n tree, text string) error {
	filled, err := c.expand(ctx, &call{function: n.function(), node: n}, text)
	if err != nil {
		return fmt.Errorf("rewrite %s: %w", n.function(), err)
	}
	alias, at := n["alias"], n["query_location"]
	clear(n)
	for k, v := range filled {
		n[k] = v
	}
	n["alias"], n["query_location"] = alias, at
	c.reduced = true
	return nil
}
