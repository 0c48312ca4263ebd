package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// rewriteRelations writes relations of the outermost SELECT in the forms that the rules know: unnest in FROM as a
// subquery, a star as the columns of today, and the first row of each key as an aggregation.
func (c *compiler) rewriteRelations(ctx context.Context) error {
	if err := c.unnestInFrom(ctx, c.node); err != nil {
		return err
	}
	if err := c.expandStars(ctx); err != nil {
		return err
	}
	return c.takeLatest(ctx)
}

// unnestInFrom writes FROM source AS s, unnest(s.items) AS t (item) as FROM (SELECT *, unnest(s.items) AS item FROM
// source AS s), and the names t.item and s.x without their relation.
func (c *compiler) unnestInFrom(ctx context.Context, node tree) error {
	join := node.child("from_table")
	if join.kind() != "JOIN" {
		return nil
	}
	relations, columns := []string{}, []string{}
	from, ok, err := c.unnested(ctx, join, &relations, &columns)
	if err != nil || !ok {
		return err
	}
	for _, col := range c.source {
		if slices.ContainsFunc(columns, func(name string) bool { return strings.EqualFold(name, col.name) }) {
			return nil // the names would be ambiguous
		}
	}
	node["from_table"] = map[string]any(from)
	bare := func(n tree) {
		names := n.texts("column_names")
		if n.class() == classColumn && len(names) > 1 && slices.ContainsFunc(relations, func(r string) bool {
			return strings.EqualFold(r, names[0])
		}) {
			list, _ := n["column_names"].([]any)
			n["column_names"] = list[1:]
		}
	}
	for _, key := range []string{"select_list", "where_clause", "group_expressions", "having", "qualify", "modifiers"} {
		each(node[key], func(n tree) bool {
			bare(n)
			if n.class() == classStar && slices.Contains(relations, n.text("relation_name")) {
				n["relation_name"] = ""
			}
			return true
		})
	}
	c.reduced, c.rewritten = true, true
	return nil
}

// unnested returns the subquery for a relation joined with unnest(list) AS t (column); ok is false for other joins.
func (c *compiler) unnested(ctx context.Context, join tree, relations, columns *[]string) (from tree, ok bool,
	err error,
) {
	left, right := join.child("left"), join.child("right")
	function := right.child("function")
	outer := join.text("join_type") == "LEFT"
	names := right.texts("column_name_alias")
	plain := right.kind() == "TABLE_FUNCTION" && function.function() == "unnest" && len(function.list("children")) == 1 &&
		len(names) == 1 && right.text("with_ordinality") != "WITH_ORDINALITY" && right.child("sample") == nil &&
		len(join.texts("using_columns")) == 0
	crossed := join.text("ref_type") == "CROSS" && !outer || join.text("ref_type") == "REGULAR" &&
		alwaysTrue(join.child("condition"))
	if !plain || !crossed || join.text("join_type") != "INNER" && !outer {
		return nil, false, nil
	}
	if left.kind() == "JOIN" {
		if left, ok, err = c.unnested(ctx, left, relations, columns); err != nil || !ok {
			return nil, false, err
		}
	} else if left.kind() != fromTable && left.kind() != fromSubquery {
		return nil, false, nil
	} else {
		*relations = append(*relations, relationName(left))
	}
	text := "unnest(x)"
	if outer { // a list without values leaves one row
		text = "unnest(CASE WHEN len(x) > 0 THEN x ELSE [NULL] END)"
	}
	statements, err := c.session.parse(ctx, fmt.Sprintf("SELECT * FROM (SELECT *, %s AS %s FROM source) AS %s", text,
		ident(names[0]),
		ident("joined")))
	if err != nil {
		return nil, false, fmt.Errorf("parse the form of unnest: %w", err)
	}
	from = statements[0].child("node").child("from_table")
	inner := from.child("subquery").child("node")
	list, _ := inner["select_list"].([]any)
	argument := function.list("children")[0].clone()
	if left.kind() == fromSubquery && left.alias() == "joined" { // names of relations below it
		each(argument, func(n tree) bool {
			if parts := n.texts("column_names"); n.class() == classColumn && len(parts) > 1 {
				list, _ := n["column_names"].([]any)
				n["column_names"] = list[1:]
			}
			return true
		})
	}
	list[1] = map[string]any(fill(asTree(list[1]), map[string]tree{"x": argument}))
	asTree(list[1])["alias"] = names[0]
	inner["from_table"] = map[string]any(left)
	strip(from)
	*relations, *columns = append(*relations, right.alias()), append(*columns, names[0])
	return from, true, nil
}

// alwaysTrue reports whether a join condition is missing or the constant TRUE.
func alwaysTrue(condition tree) bool {
	if condition == nil {
		return true
	}
	if condition.class() == classCast {
		condition = condition.child("child")
	}
	value := condition.child("value")["value"]
	return condition.class() == classConstant && (value == true || value == "t" || value == "true")
}

// expandStars replaces plain stars of the outermost select list by the columns that there are now. The meta columns are
// not among them.
func (c *compiler) expandStars(ctx context.Context) error {
	list := c.node.list("select_list")
	relation := relationName(c.node.child("from_table"))
	plain := func(e tree) bool {
		return e.class() == classStar && !e.flag("columns") && e.child("expr") == nil && len(e.list("replace_list")) == 0 &&
			len(e.list("rename_list")) == 0 && len(e.list("qualified_exclude_list")) == 0 &&
			(e.text("relation_name") == "" || strings.EqualFold(e.text("relation_name"), relation))
	}
	if !slices.ContainsFunc(list, plain) {
		return nil
	}
	columns, err := c.inputNames(ctx)
	if err != nil || len(columns) == 0 {
		return err
	}
	var out []any
	var shown []string
	for _, e := range list {
		if !plain(e) {
			out = append(out, map[string]any(e))
			continue
		}
		left := e.texts("exclude_list")
		for _, name := range columns {
			if strings.HasPrefix(name, "_") || slices.ContainsFunc(left,
				func(l string) bool { return strings.EqualFold(l, name) }) {
				continue
			}
			out, shown = append(out, map[string]any(reference(name, e))), append(shown, name)
		}
	}
	if len(shown) == 0 {
		return nil
	}
	c.node["select_list"], c.reduced, c.rewritten = out, true, true
	c.refused.warn(placeOf(list[0]), "the star means the columns of now: "+strings.Join(shown, ", "), "name the columns")
	return nil
}
