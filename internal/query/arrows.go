package query

import "fmt"

// looseArrows refuses JSON arrows whose operand is wider than intended. Arrows bind looser than AND, NOT, = and ||:
// DuckDB parses a = 1 AND p->>'op' = 'd' as (a = 1 AND p)->>'op', which fails over records instead of at binding.
// DuckDB's tree has no parentheses, so every arrow over a condition is refused, also one with explicit parentheses: a
// condition has no fields.
func (c *compiler) looseArrows() {
	each(c.statement, func(n tree) bool {
		switch {
		case n.class() == classFunction && n.function() == "->>":
			children := n.list("children")
			if len(children) == 2 && (compound(children[0]) || condition(children[1])) {
				c.refuseArrow(n, "->>")
			}
		case n.class() == classLambda: // a bare -> may be an arrow or a lambda
			if compound(n.child("lhs")) {
				c.refuseArrow(n, "->")
			}
		}
		return true
	})
	for _, of := range c.conditions() {
		if of.class() == classLambda && condition(of.child("expr")) { // WHERE p->'a' = 'x'
			c.refuseArrow(of, "->")
		}
	}
}

// conditions returns the expressions that are not arguments of a function. There, an arrow cannot be a lambda.
func (c *compiler) conditions() []tree {
	var out []tree
	each(c.statement, func(n tree) bool {
		for _, key := range []string{"where_clause", "left", "right", "filter", "when_expr", "child"} {
			if e := n.child(key); e != nil {
				out = append(out, e)
			}
		}
		if n.class() != classFunction {
			out = append(out, n.list("children")...)
		}
		out = append(out, n.list("select_list")...)
		return true
	})
	return out
}

func (c *compiler) refuseArrow(n tree, arrow string) {
	c.refused.add(placeOf(n),
		fmt.Sprintf("%s binds looser than AND, NOT, = and ||, so this takes a field of a whole condition", arrow),
		fmt.Sprintf("put the arrow into parentheses: (p%s'a') = 'x'", arrow))
}

// condition reports whether an expression is a boolean condition.
func condition(e tree) bool {
	switch e.class() {
	case classAnd, classCompare, classBetween:
		return true
	case classOperator:
		switch e.kind() {
		case "OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "COMPARE_IN", "COMPARE_NOT_IN":
			return true
		}
	}
	return false
}

// compound reports whether an expression is a condition, or combines two values with an operator.
func compound(e tree) bool {
	return condition(e) || e.class() == classFunction && e.flag("is_operator") && e.function() != "->>" &&
		len(e.list("children")) == 2
}
