package query

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// keepsValues reports whether an aggregate stores the values themselves, so that distinct_max has to limit how many.
func keepsValues(function string) bool {
	return function == "list" || function == "string_agg" || bagFunction(function)
}

// ordersValues reports whether ORDER BY inside the aggregate decides about its result.
func ordersValues(function string) bool {
	switch function {
	case "list", "string_agg", "first", "last", "any_value":
		return true
	}
	return false
}

// withinGroup writes f(q) WITHIN GROUP (ORDER BY x) as f(x, q).
func withinGroup(e tree, call *call) {
	orders := e.child("order_bys").list("orders")
	children, _ := e["children"].([]any)
	arguments := 1
	if call.function == "mode" {
		arguments = 0
	}
	if !bagFunction(call.function) || len(orders) != 1 || len(children) != arguments {
		return
	}
	call.descending = orders[0].kind() == "DESCENDING"
	e["children"] = append([]any{map[string]any(orders[0].child("expression"))}, children...)
	e.child("order_bys")["orders"] = []any{}
}

// takeOrders takes ORDER BY inside an aggregate.
func (c *compiler) takeOrders(e tree, call *call, name string) {
	orders := e.child("order_bys").list("orders")
	for _, o := range orders {
		c.expression(o.child("expression"), name)
	}
	if len(orders) == 0 || ordersValues(call.function) {
		call.orders = orders
		return
	}
	if bagFunction(call.function) || formOf(call.function).ties {
		c.refused.add(e.at(), named(name, e.function()+"() ignores ORDER BY"), "remove it")
		return
	}
	c.refused.warn(e.at(), named(name, "ORDER BY inside "+e.function()+"() changes nothing"), "remove it")
	e.child("order_bys")["orders"] = []any{}
}

// value is a constant argument of an aggregate.
type value struct{ text, typ string }

// constantOf evaluates a constant expression; ok is false for others and for NULL.
func (c *compiler) constantOf(ctx context.Context, e tree) (v value, ok bool, err error) {
	if !constantOnly(e) || c.aggregates(e) {
		return value{}, false, nil
	}
	text, err := c.selected(ctx, "SELECT 1", []tree{e})
	if err != nil {
		return value{}, false, err
	}
	rows, err := c.session.texts(ctx,
		"SELECT coalesce(CAST(v AS VARCHAR), ''), CASE WHEN v IS NULL THEN '' ELSE typeof(v) END FROM ("+
			text+") AS q (v)")
	if err != nil || len(rows) != 1 || rows[0][1] == "" {
		return value{}, false, nil //nolint:nilerr // bind reports the error with its place
	}
	return value{rows[0][0], rows[0][1]}, true, nil
}

// constants reads the constant arguments of aggregates: fractions, separators and how many values are kept.
func (c *compiler) constants(ctx context.Context) error {
	for _, it := range c.items {
		if it.call == nil {
			continue
		}
		children := it.node.list("children")
		at, what, cure := it.call.constantAt(len(children)), "", ""
		if at < 0 {
			continue
		}
		v, ok, err := c.constantOf(ctx, children[at])
		if err != nil {
			return err
		}
		switch f := it.call.function; {
		case f == "string_agg":
			it.call.separator = v.text
			what, cure = "needs a constant text between the values", "write string_agg(x, ',')"
		case bagFunction(f):
			ok = ok && it.call.takeFractions(v)
			what, cure = "needs constant fractions from 0 to 1", "write "+f+"(x, 0.9)"
		default:
			n, wrong := strconv.Atoi(v.text)
			it.call.limit, ok = n, ok && wrong == nil && n > 0 && n <= maxTop
			what, cure = fmt.Sprintf("needs a constant number from 1 to %d of values to keep", maxTop), "write "+f+"(x, 10)"
		}
		if !ok {
			c.refused.add(it.at, named(it.name, it.node.function()+"() "+what), cure)
		}
	}
	return nil
}

// maxTop is the largest number of values that max(x, n) and similar functions keep.
const maxTop = 10_000

// constantAt returns the index of the constant argument of a call with so many arguments, or -1.
func (c call) constantAt(arguments int) int {
	switch c.function {
	case "string_agg", "quantile_cont", "quantile_disc", "min", "max":
		if arguments == 2 {
			return 1
		}
	case "arg_min", "arg_max":
		if arguments == 3 {
			return 2
		}
	}
	return -1
}

// takeFractions reads a number or a list of numbers. Negative ones count from the greatest value.
func (c *call) takeFractions(v value) bool {
	text, list := strings.CutSuffix(v.text, "]")
	exact := strings.HasPrefix(v.typ, "DECIMAL")
	negative := 0
	parts := strings.Split(strings.TrimPrefix(text, "["), ",")
	for _, p := range parts {
		p = strings.TrimSpace(p)
		x, err := strconv.ParseFloat(p, 64)
		if err != nil || !(x >= -1 && x <= 1) {
			return false
		}
		if strings.HasPrefix(p, "-") {
			negative++
		}
		c.fractions = append(c.fractions, fraction{strings.TrimPrefix(p, "-"), exact})
	}
	if negative > 0 {
		c.descending = !c.descending
	}
	c.listed = list
	return negative == 0 || negative == len(parts)
}

// collectForm returns the form of a call that keeps values, or nil if it is no such call.
func (c *compiler) collectForm(it item) *form {
	call := it.call
	duck := call.types[0]
	l := listing{value: "x", duck: duck, oneTopic: len(c.spec.Source.Topics) == 1}
	switch f := call.function; {
	case bagFunction(f):
		b := bag{
			function: f, duck: duck, limit: c.spec.DistinctMax, distinct: call.distinct, descending: call.descending,
			fractions: call.fractions, list: call.listed,
		}
		if cause, cure := b.problem(); cause != "" {
			c.refused.add(it.at, named(it.name, cause), cure)
			return &form{}
		}
		return b.form()
	case f == "list", f == "string_agg":
		l.limit, l.place = c.spec.DistinctMax+1, 1
		l.orders = c.listOrders(it)
		if f == "list" {
			return c.kept(it, l).all()
		}
		l.value, l.duck, l.where = "CAST(x AS VARCHAR)", "VARCHAR", " FILTER (WHERE x IS NOT NULL)"
		separator := ","
		if len(call.types) == 2 {
			separator = call.separator
		}
		return l.joined(separator)
	case (f == "first" || f == "last" || f == "any_value") && (len(call.orders) > 0 || !picked(duck)):
		l.orders, l.place = c.listOrders(it), 1
		if f == "last" {
			l.orders, l.place = reversed(l.orders), -1
		}
		if f == "any_value" {
			l.where = " FILTER (WHERE x IS NOT NULL)"
		}
		return c.kept(it, l).only()
	}
	return c.extremeForm(it, l)
}

// extremeForm returns the form of min, max, arg_min and arg_max that keep several values, or one that is not a single
// value; otherwise nil.
func (c *compiler) extremeForm(it item, l listing) *form {
	call := it.call
	base, keepsNull := strings.CutSuffix(call.function, "_null")
	desc := base == "max" || base == "arg_max"
	l.where, l.limit = " FILTER (WHERE x IS NOT NULL)", call.limit
	switch {
	case (base == "min" || base == "max") && (call.limit > 0 || !single(call.types[0])):
		l.orders = c.orderTerms(it, "x", call.types[0], desc, desc)
	case (base == "arg_min" || base == "arg_max") && len(call.types) > 1 && (call.limit > 0 || !picked(call.types[0]) ||
		!single(call.types[1])):
		l.orders = c.orderTerms(it, "y", call.types[1], desc, desc)
		l.where = " FILTER (WHERE x IS NOT NULL AND y IS NOT NULL)"
		if keepsNull {
			l.where = " FILTER (WHERE y IS NOT NULL)"
		}
		l.place = 1
		if desc && call.limit == 0 { // like arg_max of single values
			l.place = -1
		}
	default:
		return nil
	}
	if call.limit > 0 {
		return c.kept(it, l).top()
	}
	return c.kept(it, l).only()
}

// single reports whether values of a DuckDB type are kept and compared in a column of their own.
func single(duck string) bool {
	pg, _ := resultType(duck)
	return comparable(duck, pg)
}

// picked reports whether a value of a DuckDB type that first, arg_max and similar functions pick has a column of its
// own.
func picked(duck string) bool { return single(duck) || duck == "INTERVAL" }

// kept refuses values that JSON cannot hold as they are.
func (c *compiler) kept(it item, l listing) listing {
	if l.nested() && (strings.Contains(l.duck, "BLOB") || strings.HasPrefix(l.duck, "MAP(")) {
		c.refused.add(it.at, named(it.name, it.node.function()+"() does not keep "+l.duck),
			"take the fields out that you need, "+
				"or cast it to VARCHAR")
	}
	return l
}

// listOrders returns the terms of ORDER BY inside a call.
func (c *compiler) listOrders(it item) []listOrder {
	var out []listOrder
	for i, o := range it.call.orders {
		how := direction(o)
		out = append(out, c.orderTerms(it, fmt.Sprintf("o%d", i+1), it.call.orderTypes[i], strings.HasPrefix(how, "DESC"),
			strings.HasSuffix(how, "FIRST"))...)
	}
	return out
}

// orderTerms returns the terms that order values of a DuckDB type. Structs are ordered by their fields; in them NULL is
// the greatest value.
func (c *compiler) orderTerms(it item, text, duck string, desc, nullsFirst bool) []listOrder {
	out, ok := orderTerms(text, duck, desc, nullsFirst)
	if !ok {
		c.refused.add(it.at, named(it.name, it.node.function()+"(): values of "+duck+" have another order in PostgreSQL"),
			"order by a number, a text or a time taken from it")
	}
	return out
}

func orderTerms(text, duck string, desc, nullsFirst bool) (out []listOrder, ok bool) {
	if list := listType(duck); list != duck {
		text, duck = "CAST("+text+" AS "+list+")", list
	}
	own := listOrder{text, duck, desc, nullsFirst}
	pg, known := resultType(duck)
	fields, isStruct := structFields(duck)
	switch {
	case isStruct:
		out = []listOrder{{text + " IS NULL", "BOOLEAN", nullsFirst, false}}
		for i, f := range fields {
			terms, ok := orderTerms(fmt.Sprintf("struct_extract_at(%s, %d)", text, i+1), f, desc, desc)
			if !ok {
				return nil, false
			}
			out = append(out, terms...)
		}
		return out, len(fields) > 0
	case duck == "JSON":
		own.value, own.duck = "CAST("+text+" AS VARCHAR)", "VARCHAR"
		return []listOrder{own}, true
	case strings.HasSuffix(pg, "[]"):
		item := element(duck)
		return []listOrder{own}, item != "" && single(item)
	}
	return []listOrder{own}, known && (comparable(duck, pg) || duck == "INTERVAL")
}

// structFields returns the types of the fields of a STRUCT; ok is false for other types.
func structFields(duck string) (types []string, ok bool) {
	inner, ok := strings.CutPrefix(duck, "STRUCT(")
	if !ok || !strings.HasSuffix(inner, ")") {
		return nil, false
	}
	inner = strings.TrimSuffix(inner, ")")
	depth, quoted, start := 0, false, 0
	for i := 0; i <= len(inner); i++ {
		switch {
		case i == len(inner) || inner[i] == ',' && depth == 0 && !quoted:
			types = append(types, nestedType(strings.TrimSpace(inner[start:i])))
			start = i + 1
		case inner[i] == '"':
			quoted = !quoted
		case quoted:
		case inner[i] == '(':
			depth++
		case inner[i] == ')':
			depth--
		}
	}
	return types, true
}

// nestedType returns the type of `name type` or of `"na me" type`.
func nestedType(field string) string {
	if rest, isQuoted := strings.CutPrefix(field, `"`); isQuoted {
		if i := strings.LastIndex(rest, `" `); i >= 0 {
			return rest[i+2:]
		}
	}
	_, typ, _ := strings.Cut(field, " ")
	return typ
}
