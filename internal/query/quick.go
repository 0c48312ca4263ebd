package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

const timestampTZ = "TIMESTAMP WITH TIME ZONE"

// quickForms are expressions over a timestamp with time zone y that equal DuckDB's own and take a fifth of the time,
// because its time zone library processes one value at a time. In UTC, which every session uses, truncating the bare
// microseconds gives the same result. Infinity and NULL have no microseconds and become NULL in between; truncating
// returns them unchanged.
const quickForms = `SELECT coalesce(make_timestamptz(epoch_us(date_trunc(x, make_timestamp(epoch_us(y))))), y),
	coalesce(CAST(make_timestamp(epoch_us(y)) AS DATE), CAST(y AS DATE))`

// quickParts lists the parts for which truncation is the same with and without the library. From decades upward the two
// count years before Christ differently, and below seconds the library rounds distant times.
func quickParts() []string {
	return []string{"second", "minute", "hour", "day", "week", "month", "quarter", "year"}
}

// writeQuick sets the statement that Land runs.
func (c *compiler) writeQuick(ctx context.Context, out *Compiled, forms templates, states []*state) error {
	statement, err := c.quick(ctx, c.partial(forms, states, forms.carried(out.places)))
	if err != nil {
		return err
	}
	out.quick, err = c.session.write(ctx, statement)
	return err
}

// quick returns PARTIAL with its keys in the quicker forms if the query reads source itself, so that the meaning of
// names is certain. The statement returns the same rows.
func (c *compiler) quick(ctx context.Context, partial tree) (tree, error) {
	node := partial.child("node")
	from := node.child("from_table")
	if from.kind() != fromTable || len(from.texts("column_name_alias")) > 0 || len(node.child("cte_map").list("map")) > 0 {
		return partial, nil
	}
	statements, err := c.session.parse(ctx, quickForms)
	if err != nil {
		return nil, fmt.Errorf("parse the quicker forms: %w", err)
	}
	forms := statements[0].child("node").list("select_list")
	list, _ := node["select_list"].([]any)
	for i, e := range node.list("select_list") {
		if q := c.quickKey(e, forms); q != nil {
			q["alias"] = e.alias()
			list[i] = map[string]any(q)
		}
	}
	return partial, nil
}

// quickKey returns the quicker form of an expression, or nil.
func (c *compiler) quickKey(e tree, forms []tree) tree {
	switch e.class() {
	case classFunction:
		args := e.list("children")
		if e.function() == "date_trunc" && e.text("schema") == "" && len(args) == 2 && quickPart(args[0]) &&
			c.zoned(args[1]) {
			return fill(forms[0], map[string]tree{"x": args[0], "y": args[1]})
		}
	case classCast:
		if arg := e.child("child"); e.child("cast_type").text("id") == "DATE" && !e.flag("try_cast") && c.zoned(arg) {
			return fill(forms[1], map[string]tree{"y": arg})
		}
	}
	return nil
}

func quickPart(e tree) bool {
	return e.class() == classConstant && slices.Contains(quickParts(), strings.ToLower(e.child("value").text("value")))
}

// zoned reports whether e is a column of source of type timestamp with time zone.
func (c *compiler) zoned(e tree) bool {
	names := e.texts("column_names")
	return e.class() == classColumn && len(names) == 1 && slices.ContainsFunc(c.source, func(col column) bool {
		return col.typ == timestampTZ && strings.EqualFold(col.name, names[0])
	})
}
