package query

import (
	"context"
	"fmt"
)

// rewrites are aggregates that are other aggregates, or computed from them. x and y are the arguments by position.
var rewrites = map[string]struct {
	arguments int
	text      string
}{
	"regr_avgx": {2, "avg(y) FILTER (WHERE x IS NOT NULL)"},
	"regr_avgy": {2, "avg(x) FILTER (WHERE y IS NOT NULL)"},
	"sem":       {1, "stddev_pop(x) / sqrt(count(x))"},
}

// rewriteAggregates replaces calls of these aggregates in the outermost SELECT.
func (c *compiler) rewriteAggregates(ctx context.Context) error {
	var err error
	for _, key := range []string{"select_list", "having", "modifiers"} {
		each(c.node[key], func(n tree) bool {
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
