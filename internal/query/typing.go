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
