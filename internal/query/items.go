package query

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// item is one item of the select list: a group key or one aggregate.
type item struct {
	name string
	node tree
	at   int
	key  bool
	call *call // nil for a key
	duck string
	pg   string

	asked   string // DuckDB type in the query; duck differs where FINISH has another one
	hidden  bool   // readers do not see it
	derived bool   // a function of other keys

	grouping bool // GROUPING of the keys of a grouping set
}

// takeItems sorts the select list into keys and aggregates and refuses anything else.
func (c *compiler) takeItems(ctx context.Context) error {
	list := c.node.list("select_list")
	c.distinctRows(list)
	if c.rowJob(list) {
		c.takeRowOrder()
		return nil
	}
	before := len(c.refused.problems)
	keys, err := c.groupKeys(ctx, list)
	if err != nil {
		return err
	}
	c.vague = len(c.refused.problems) > before
	columns := make([]outerColumn, len(list))
	for i, e := range list {
		columns[i] = outerColumn{name: nameOf(e), at: firstPlace(e), item: -1, node: e}
		if c.computed(e, keys[i]) {
			c.named(columns[i].name, columns[i].at)
			if constantOnly(e) && !c.aggregates(e) {
				c.expression(e, columns[i].name)
			}
			continue
		}
		columns[i].item = len(c.items)
		c.items = append(c.items, c.takeItem(e, keys[i]))
	}
	c.items = append(c.items, c.unselected...)
	if c.vague {
		columns = nil
	}
	c.checkNames(columns)
	if err := c.expressions(ctx, columns); err != nil {
		return err
	}
	if err := c.constants(ctx); err != nil {
		return err
	}
	return c.quantiles(ctx)
}

// computed reports whether a select item is neither a key nor one aggregate, but may be computed from them.
func (c *compiler) computed(e tree, key bool) bool {
	switch {
	case c.vague || key || e.class() == classStar || e.class() == classWindow:
		return false
	case e.class() == classFunction && c.functions.aggregate(e.function()):
		return false
	case e.class() == classFunction && !mergeable(e.function()) && aggregateCure(e.function()) != aggregateCure(""):
		return false
	}
	return true
}

// named refuses a column without a name.
func (c *compiler) named(name string, at int) {
	if name == "" && !c.vague {
		c.refused.add(at, "the column has no name", "name it: … AS name")
	}
}

// aggregates reports whether the expression contains an aggregate or window function.
func (c *compiler) aggregates(e tree) bool {
	found := false
	each(e, func(n tree) bool {
		found = found || (n.class() == classFunction && c.functions.aggregate(n.function()) &&
			!c.functions[n.function()].scalar)
		return n.class() != classSubquery
	})
	return found
}

func (c *compiler) takeItem(e tree, key bool) item {
	it := item{name: nameOf(e), node: e, at: firstPlace(e), key: key}
	switch {
	case e.class() == classStar:
		c.refused.add(it.at, "a star in the select list is neither a key nor an aggregate", "name the columns")
		return it
	case key:
		c.expression(e, it.name)
	case e.class() == classFunction && c.functions.aggregate(e.function()):
		it.call = c.takeCall(e, it.name)
	case e.class() == classWindow:
		c.allowed(e, it.name)
	case e.class() == classFunction && !mergeable(e.function()) && aggregateCure(e.function()) != aggregateCure(""):
		c.refused.add(it.at, named(it.name, shown(e.function())+" cannot be merged from partial results"),
			aggregateCure(e.function()))
	default:
		c.neither(it)
	}
	c.named(it.name, it.at)
	return it
}

// neither refuses an item that is neither a key nor an aggregate, with the most likely cause.
func (c *compiler) neither(it item) {
	before := len(c.refused.problems)
	c.expression(it.node, it.name)
	if c.vague || len(c.refused.problems) > before { // it may be a key of a GROUP BY that was refused
		return
	}
	c.refused.add(it.at, named(it.name, "it is neither a group key nor one aggregate"),
		"add the expression to GROUP BY, aggregate it, or compute it in serve.columns")
}

// takeCall checks one aggregate.
func (c *compiler) takeCall(e tree, name string) *call {
	f := e.function()
	at := e.at()
	if !mergeable(f) {
		c.refused.add(at, named(name, shown(f)+" cannot be merged from partial results"), aggregateCure(f))
		return nil
	}
	if e.flag("distinct") && ignoresRepeats(f) {
		e["distinct"] = false // it changes nothing
	}
	function := canonical(f)
	out := &call{function: function, node: e, form: formOf(function)}
	withinGroup(e, out)
	out.distinct = e.flag("distinct") && distinctFunction(function) && len(e.list("children")) > 0
	c.wantsMax = c.wantsMax || c.spec.DistinctMax == 0 &&
		(out.distinct || function == "histogram" || keepsValues(function))
	switch {
	case c.spec.DistinctMax > 0:
	case out.distinct:
		c.refused.add(at, named(name,
			f+"(DISTINCT x) stores the values themselves, and distinct_max does not limit how many"),
			distinctCure(f))
	case function == "histogram":
		c.refused.add(at, named(name,
			"histogram(x) stores a count for each different value, and distinct_max does not limit how many"),
			"add distinct_max: 1000 to the job file (with more values than that the histogram is NULL), or count per bucket: "+
				"add floor(x / 10) * 10 AS bucket to GROUP BY and select count(*)")
	case keepsValues(function):
		c.refused.add(at, named(name, f+"() stores the values themselves, and distinct_max does not limit how many"),
			distinctCure(f))
	}
	if e.flag("distinct") && !out.distinct {
		c.refused.add(at, named(name, "DISTINCT inside "+f+"() cannot be merged"), "write histogram(x) AS h with "+
			"distinct_max, whose keys are the different values, and compute it in serve.columns from jsonb_object_keys(h)")
	}
	c.takeOrders(e, out, name)
	if e.flag("export_state") {
		c.refused.add(at, named(name, "EXPORT_STATE cannot be served"), "remove it; kappactl keeps the states itself")
	}
	children := e.list("children")
	if len(children) > arguments(function) {
		call := f + "(" + strings.Join([]string{"x", "y", "z"}[:arguments(function)], ", ")
		c.refused.add(at, named(name, f+"() has too many arguments"), "use "+call+")")
		return nil
	}
	for _, child := range children {
		c.expression(child, name)
	}
	if filter := e.child("filter"); filter != nil {
		c.expression(filter, name)
	}
	return out
}

// distinctCure returns the fix for DISTINCT in an aggregate without distinct_max.
func distinctCure(function string) string {
	const add = "add distinct_max: 1000 to the job file (with more values than that the column is NULL)"
	switch canonical(function) {
	case "count":
		return add + ", or write approx_count_distinct(x)"
	case "median", "quantile_cont", "quantile_disc":
		return add + ", or write approx_quantile(x, 0.5)"
	}
	return add
}

// quantiles reads the fractions of approx_quantile, which FINISH needs.
func (c *compiler) quantiles(ctx context.Context) error {
	for _, it := range c.items {
		if it.call == nil || it.call.function != "approx_quantile" || len(it.node.list("children")) != 2 {
			continue
		}
		probe, err := c.session.parse(ctx, "SELECT 1")
		if err != nil {
			return fmt.Errorf("read a fraction: %w", err)
		}
		fraction := it.node.list("children")[1].clone()
		strip(fraction)
		probe[0].child("node")["select_list"] = []any{map[string]any(fraction)}
		text, err := c.session.write(ctx, probe[0])
		if err != nil {
			return err
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(text, "SELECT "), 64)
		if err != nil || !(q >= 0 && q <= 1) {
			c.refused.add(it.at, named(it.name, "approx_quantile(x, q) needs one number from 0 to 1 as its q"),
				"write one column per quantile: approx_quantile(x, 0.99) AS p99")
			continue
		}
		it.call.quantile = q
	}
	return nil
}

// ignoresRepeats reports whether repeated values do not change the function's result.
func ignoresRepeats(function string) bool {
	switch function {
	case "min", "max", "bool_and", "bool_or", "bit_and", "bit_or":
		return true
	}
	return formOf(canonical(function)).ties
}

// checkNames refuses column names that conflict with PostgreSQL or with kappactl's own columns.
func (c *compiler) checkNames(columns []outerColumn) {
	seen := map[string]bool{}
	for _, it := range columns {
		if it.name == "" {
			continue
		}
		if cause, cure := nameProblem(it.name); cause != "" {
			c.refused.add(it.at, cause, cure)
		}
		folded := strings.ToLower(it.name)
		if seen[folded] {
			c.refused.add(it.at, fmt.Sprintf("two columns are named %q", it.name), "give one another name: … AS name")
		}
		seen[folded] = true
	}
}
