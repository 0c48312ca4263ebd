package query

import (
	"context"
	"encoding/json"
	"fmt"
)

// templates holds parse trees to insert into others.
type templates struct{ one, time, place tree }

func (c *compiler) templates(ctx context.Context) (templates, error) {
	text := fmt.Sprintf("SELECT 1, %s, %s", ident(timeAlias), ident(placeAlias))
	statements, err := c.session.parse(ctx, text)
	if err != nil {
		return templates{}, fmt.Errorf("parse templates: %w", err)
	}
	list := statements[0].child("node").list("select_list")
	return templates{one: list[0], time: list[1], place: list[2]}, nil
}

// carried returns the hidden columns that an aggregation needs.
func (t templates) carried(places bool) []tree {
	if !places {
		return nil
	}
	return []tree{t.time, t.place}
}

// fill copies a template with its columns x and y replaced.
func fill(template tree, with map[string]tree) tree {
	out := tree{"e": cloneValue(map[string]any(template))}
	replaceColumns(map[string]any(out), with)
	filled := out.child("e")
	strip(filled)
	return filled
}

func replaceColumns(v any, with map[string]tree) {
	swap := func(x any) any {
		if n := asTree(x); n != nil && n.class() == classColumn {
			if r, ok := with[n.texts("column_names")[0]]; ok {
				return map[string]any(r.clone())
			}
		}
		replaceColumns(x, with)
		return x
	}
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = swap(x)
		}
	case []any:
		for i, x := range v {
			v[i] = swap(x)
		}
	}
}

// strip removes places, which refer to another text.
func strip(v tree) {
	each(v, func(n tree) bool {
		if _, ok := n["query_location"]; ok {
			n["query_location"] = json.Number("18446744073709551615")
		}
		return true
	})
}
