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
		if s.merge == mergeSum && strings.HasPrefix(s.pg, "numeric") {
			s.pg = "numeric" // totals outgrow the precision of their parts
		}
		if s.place {
			s.pg = "text"
		}
		if item, _ := resultType(element(s.duck)); s.merge == mergeSet && (!comparable(element(s.duck), item) || !strings.HasSuffix(s.pg, "[]")) {
			c.refused.add(s.of.at, named(s.of.name, "values of "+element(s.duck)+" have another order in PostgreSQL"), "count a number, a text or a time taken from it")
		}
		if s.of.call.form.ties && (s.merge == mergeMin || s.merge == mergeMax) && !s.place && !comparable(s.duck, s.pg) {
			c.refused.add(s.of.at, named(s.of.name, "values of "+s.duck+" have another order in PostgreSQL"), "order by a number, a text or a time taken from it")
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
			c.refused.add(it.at, named(it.name, "approx_quantile of "+it.duck+" is not supported"), "take a number from it, such as epoch(x)")
		}
		it.pg, it.duck = it.call.form.typ, it.call.form.duck
	}
	c.typeCall(it)
}

// typeCall refuses an aggregate over values that PostgreSQL merges differently.
func (c *compiler) typeCall(it *item) {
	switch f := it.call.function; f {
	case "sum":
		if strings.HasPrefix(it.pg, "numeric") {
			it.pg = "numeric"
		}
	case "avg":
		if it.duck != "DOUBLE" {
			c.refused.add(it.at, named(it.name, "avg of "+it.duck+" cannot be merged"), "average a number, such as epoch(x), and convert it in serve.columns")
		}
	case "min", "max":
		if !comparable(it.duck, it.pg) {
			c.refused.add(it.at, named(it.name, f+" of "+it.duck+" has another order in PostgreSQL"), "compare a number, a text or a time taken from it")
		}
	case "bit_and", "bit_or", "bit_xor":
		if it.pg != "smallint" && it.pg != "integer" && it.pg != "bigint" {
			c.refused.add(it.at, named(it.name, f+" of "+it.duck+" has no twin in PostgreSQL"), "cast it to BIGINT")
		}
	default:
		if it.call.form.ties && (it.pg == "jsonb" || strings.HasSuffix(it.pg, "[]")) {
			c.refused.add(it.at, named(it.name, f+" keeps single values, not "+it.duck), "take the fields out that you need, or cast it to VARCHAR")
		}
	}
}
