package query

import (
	"context"
	"fmt"
)

// macro is one of DuckDB's macros that unnests a list: its text over its parameters.
type macro struct {
	name       string
	parameters []string
	definition string
}

// nameUnnest rewrites every call that returns several rows as unnest(…), which all rules look for: unlist is an alias
// of it, and some macros hide it.
func (c *compiler) nameUnnest(ctx context.Context) error {
	var err error
	each(c.statement, func(n tree) bool {
		if n.class() != classFunction {
			return true
		}
		if n.function() == "unlist" {
			n["function_name"] = "unnest"
		}
		for _, m := range c.unnesting {
			if n.function() == m.name && len(n.list("children")) == len(m.parameters) && err == nil {
				err = c.expandMacro(ctx, n, m)
			}
		}
		return true
	})
	return err
}

// expandMacro replaces a macro call by the macro's text. The call keeps its alias and its place.
func (c *compiler) expandMacro(ctx context.Context, call tree, m macro) error {
	statements, err := c.session.parse(ctx, "SELECT "+m.definition)
	if err != nil {
		return fmt.Errorf("parse the macro %s: %w", m.name, err)
	}
	arguments := map[string]tree{}
	for i, child := range call.list("children") {
		child = child.clone()
		child["alias"] = "" // the name of an argument
		arguments[m.parameters[i]] = child
	}
	filled := fill(statements[0].child("node").list("select_list")[0], arguments)
	alias, at := call["alias"], call["query_location"]
	clear(call)
	for k, v := range filled {
		call[k] = v
	}
	call["alias"], call["query_location"] = alias, at
	return nil
}
