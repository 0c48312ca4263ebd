package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

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
		if s.duck == "BIGNUM" {
			s.pg = "numeric"
		}
		if s.merge == mergeSum && strings.HasPrefix(s.pg, "numeric") {
			s.pg = "numeric" // totals exceed the precision of their parts
		}
		if s.place {
			s.pg = "text"
		}
		if item, _ := resultType(element(s.duck)); s.merge == mergeSet &&
			(!comparable(element(s.duck), item) || !strings.HasSuffix(s.pg, "[]")) {
			c.refused.add(s.of.at, named(s.of.name, "values of "+element(s.duck)+" have another order in PostgreSQL"),
				"count a number, a text or a time taken from it")
		}
		if s.of.call.form.ties && (s.merge == mergeMin || s.merge == mergeMax) && !s.place && !comparable(s.duck, s.pg) {
			c.refused.add(s.of.at, named(s.of.name, "values of "+s.duck+" have another order in PostgreSQL"),
				"order by a number, a text or a time taken from it")
		}
	}
	return nil
}

// typeForms reads the types of the aggregates' arguments and chooses the forms that depend on them.
func (c *compiler) typeForms(ctx context.Context) error {
	statement := c.statement.clone()
	node := statement.child("node")
	var list []any
	for _, it := range c.items {
		if it.key && !it.grouping { // arguments may name it
			e := it.node.clone()
			e["alias"] = it.name
			list = append(list, map[string]any(e))
		}
	}
	keys := len(list)
	for _, it := range c.items {
		if it.call == nil {
			continue
		}
		for _, child := range it.call.typed() {
			e := child.clone()
			e["alias"] = fmt.Sprintf("%sargument_%d", ownPrefix, len(list))
			list = append(list, map[string]any(e))
		}
	}
	if len(list) == keys {
		return nil
	}
	node["select_list"], node["group_expressions"], node["group_sets"] = list, []any{}, []any{}
	node["aggregate_handling"] = "STANDARD_HANDLING"
	strip(statement)
	text, err := c.session.write(ctx, statement)
	if err != nil {
		return err
	}
	described, err := c.session.columns(ctx, text)
	if err != nil {
		return fmt.Errorf("describe the arguments of aggregates: %w", err)
	}
	described = described[keys:]
	for _, it := range c.items {
		if it.call == nil {
			continue
		}
		for range it.node.list("children") {
			it.call.types, described = append(it.call.types, described[0].typ), described[1:]
		}
		for range it.call.orders {
			it.call.orderTypes, described = append(it.call.orderTypes, described[0].typ), described[1:]
		}
		c.typeForm(it)
	}
	return nil
}

// typed returns the expressions of a call whose types decide about its form: its arguments and the terms of ORDER BY.
func (c call) typed() []tree {
	out := c.node.list("children")
	for _, o := range c.orders {
		out = append(out, o.child("expression"))
	}
	return out
}

// distinctCall returns the form of an aggregate of different values.
func (c *compiler) distinctCall(it item) *form {
	call, duck, limit := it.call, it.call.types[0], c.spec.DistinctMax
	pg, _ := resultType(duck)
	f := call.function
	if (f == "sum" || f == "avg" || spread(f)) && !numeric(pg) {
		c.refused.add(it.at, named(it.name, f+"(DISTINCT x) is for numbers"), "cast x to DECIMAL")
	}
	descending, nullsFirst := false, false
	if len(call.orders) > 0 {
		how := direction(call.orders[0])
		descending, nullsFirst = strings.HasPrefix(how, "DESC"), strings.HasSuffix(how, "FIRST")
		same := call.orders[0].child("expression").signature("") == it.node.list("children")[0].signature("")
		if len(call.orders) > 1 || !same {
			c.refused.add(it.at, named(it.name, f+"(DISTINCT x) can be ordered by x only"), "write ORDER BY x")
		}
	}
	if f == "string_agg" && duck != "VARCHAR" {
		c.refused.add(it.at, named(it.name, "string_agg(DISTINCT x) is for texts"), "cast x to VARCHAR")
	}
	if f == "list" {
		return distinctList(limit, duck, descending, nullsFirst)
	}
	separator := ","
	if len(call.types) == 2 {
		separator = call.separator
	}
	return distinctForm(f, limit, duck, separator, descending)
}

// typeForm chooses the form of a call whose types are known.
func (c *compiler) typeForm(it item) {
	call := it.call
	switch {
	case len(call.types) == 0:
	case call.distinct && !bagFunction(call.function):
		call.form = c.distinctCall(it)
	case call.function == "sum" || call.function == "avg":
		call.form = totalForm(call.function, call.types[0])
	case call.function == "histogram":
		call.form = histogramForm(c.spec.DistinctMax, call.types[0])
	case call.function == "approx_count_distinct":
		call.form = hashForm(call.types[0])
	case call.function == "approx_quantile":
		call.form = quantileForm(call.quantile)
	default:
		if form := c.collectForm(it); form != nil {
			call.form = form
			return
		}
		if form := momentForm(call.function, call.types); form != nil {
			call.form = form
		} else if higher(call.function) {
			c.refused.add(it.at, named(it.name, call.function+" is for whole numbers and decimals of up to 19 digits"),
				"cast x to DECIMAL(18, 6)")
		}
	}
	hashed := call.function == "histogram" || call.function == "approx_count_distinct"
	if hashed && len(call.types) > 0 && doubles(call.types[0]) && strings.Contains(call.types[0], "(") {
		c.refused.add(it.at, named(it.name, "the two zeroes of a double inside of "+call.types[0]+
			" are equal and have different texts"),
			"take the fields out that you count, or cast the numbers to DECIMAL")
	}
}

// typeItems reads the types of the outputs from the user's query, and refuses those that PostgreSQL cannot hold.
func (c *compiler) typeItems(ctx context.Context) error {
	text, err := c.session.write(ctx, c.statement)
	if err != nil {
		return err
	}
	outputs, err := c.session.columns(ctx, text)
	if err != nil {
		return fmt.Errorf("describe the query: %w", err)
	}
	if c.refuseStructs(outputs) {
		return nil
	}
	if len(outputs) != len(c.items) {
		return errors.New("describe the query: the number of columns differs from the select list")
	}
	for i := range c.items {
		c.items[i].duck, c.items[i].asked = outputs[i].typ, outputs[i].typ
		c.typeItem(&c.items[i])
	}
	if c.rows != nil {
		c.typeTop()
	}
	return nil
}

// refuseStructs refuses the unnest of a STRUCT in the select list, which produces a column for each of its fields, and
// reports whether there is one.
func (c *compiler) refuseStructs(outputs []column) bool {
	found := false
	for i, it := range c.items {
		unnests := it.node.class() == classFunction && it.node.function() == "unnest"
		if unnests && (len(outputs) != len(c.items) || outputs[i].name != it.name) {
			c.refused.add(it.at, named(it.name, "unnest of a STRUCT makes a column of each field; the query would have "+
				describe(columnNames(outputs)...)), "take the fields by name, such as t.x AS x")
			found = true
		}
	}
	return found
}

// typeItem determines the PostgreSQL type of an output column, or refuses it.
func (c *compiler) typeItem(it *item) {
	pg, ok := resultType(it.duck)
	if !ok {
		c.refused.add(it.at, named(it.name, "kappactl cannot store "+it.duck+" in PostgreSQL"), typeCure(it.duck))
		return
	}
	it.pg = pg
	if c.rows != nil {
		c.typeRow(it)
		return
	}
	if it.key {
		if cause, cure := keyProblem(it.duck, pg); cause != "" {
			c.refused.add(it.at, named(it.name, cause), cure)
		}
		return
	}
	if it.call.form.typ != "" {
		if it.call.function == "approx_quantile" && !numeric(pg) {
			c.refused.add(it.at, named(it.name, "approx_quantile of "+it.duck+" is not supported"),
				"take a number from it, such as epoch(x)")
		}
		it.pg, it.duck = it.call.form.typ, it.call.form.duck
	}
	c.typeCall(it)
}

// typeCall refuses an aggregate over values that PostgreSQL merges differently.
func (c *compiler) typeCall(it *item) {
	f := it.call.function
	if it.call.form.listed {
		return
	}
	switch f {
	case "sum":
		if strings.HasPrefix(it.pg, "numeric") {
			it.pg = "numeric"
		}
	case "avg":
		if it.duck != "DOUBLE" {
			c.refused.add(it.at, named(it.name, "avg of "+it.duck+" cannot be merged"),
				"average a number, such as epoch(x), and convert it in serve.columns")
		}
	case "min", "max":
		if !comparable(it.duck, it.pg) {
			c.refused.add(it.at, named(it.name, f+" of "+it.duck+" has another order in PostgreSQL"),
				"compare a number, a text or a time taken from it")
		}
	case "bit_and", "bit_or", "bit_xor":
		if it.pg != "smallint" && it.pg != "integer" && it.pg != "bigint" {
			c.refused.add(it.at, named(it.name, f+" of "+it.duck+" has no equivalent in PostgreSQL"), "cast it to BIGINT")
		}
	default:
		if it.call.form.ties && (it.pg == "jsonb" || strings.HasSuffix(it.pg, "[]")) {
			c.refused.add(it.at, named(it.name, f+" keeps single values, not "+it.duck),
				"take the fields out that you need, or cast it to VARCHAR")
		}
	}
}
