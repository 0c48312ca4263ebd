package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// For each serve.key the version table holds the row that is greatest by serve.order_by and then by place, and the
// places of the key's tombstones. Both merge in any order. The view decides whether the row is deleted.
//
// A tombstone deletes the rows that precede it in its partition, whatever their serve.order_by, and in other partitions
// those whose record is older. A place is a text of
//
//	[topic] partition offset time [n]     with serve.order_by, which is compared before the place
//	time [topic] partition offset [n]     without it: the time decides first
//
// The tombstones are an object that holds for each partition the greatest offset ("o [topic] partition") and the latest
// time ("t [topic] partition") of a tombstone, as hexadecimal digits.

// tombstonePasses holds parse trees that let tombstones through a query.
type tombstonePasses struct{ deleted, filter, unnest tree }

// tombstonePasses parses these trees. x is the condition of a filter, or the list that is unnested.
func (c *compiler) tombstonePasses(ctx context.Context) (tombstonePasses, error) {
	const forms = "SELECT %s, x OR %[1]s, CASE WHEN %[1]s AND coalesce(len(x), 0) = 0 THEN [NULL] ELSE x END"
	text := fmt.Sprintf(forms, ident(deletedAlias))
	statements, err := c.session.parse(ctx, text)
	if err != nil {
		return tombstonePasses{}, fmt.Errorf("parse templates: %w", err)
	}
	list := statements[0].child("node").list("select_list")
	return tombstonePasses{deleted: list[0], filter: list[1], unnest: list[2]}, nil
}

// add lets tombstones through every filter and every unnest: they delete by their key, and have no other values to
// filter by or to unnest.
func (p tombstonePasses) add(statement tree) {
	each(statement, func(n tree) bool {
		if where := n.child("where_clause"); where != nil && n.kind() == nodeSelect {
			n["where_clause"] = map[string]any(fill(p.filter, map[string]tree{"x": where}))
		}
		if n.class() == classFunction && n.function() == "unnest" {
			if children, ok := n["children"].([]any); ok && len(children) > 0 {
				children[0] = map[string]any(fill(p.unnest, map[string]tree{"x": asTree(children[0])}))
			}
			return false
		}
		return true
	})
}

// refuseDeepUnnest refuses an unnest that a tombstone cannot pass: over a list of NULL, unnest of several levels
// returns no row.
func (c *compiler) refuseDeepUnnest() {
	each(c.statement, func(n tree) bool {
		if n.class() == classFunction && n.function() == "unnest" && len(n.list("children")) > 1 {
			c.refused.add(placeOf(n), "unnest of several levels drops tombstones, which delete rows with serve.key",
				"write unnest(flatten(x))")
		}
		return true
	})
}

// latestLayout adds keys and states of the latest row of each key.
func (c *compiler) latestLayout(l *job.Layout, types map[string]string) {
	l.Shape = job.Latest
	for _, k := range c.rows.keys {
		l.Keys = append(l.Keys, job.KeyColumn{Name: k, Type: stored(types[k])})
	}
	best := " ORDER BY e." + ident(job.PlaceColumn) + " DESC NULLS LAST"
	if c.rows.order != "" {
		best = strings.Replace(best, "BY ", "BY e."+ident(job.OrderColumn)+" DESC NULLS LAST, ", 1)
	}
	state := func(name, typ string) {
		e := "e." + ident(name)
		aggregate := "(array_agg(" + e + best + "))[1]"
		l.States = append(l.States, job.StateColumn{Name: name, Type: typ, Combine: e, Aggregate: aggregate})
	}
	for _, it := range c.items {
		if !it.key {
			state(it.name, stored(it.pg))
		}
	}
	if c.rows.order != "" {
		state(job.OrderColumn, stored(types[c.rows.order]))
	}
	state(job.PlaceColumn, "text"+collateC)
	l.States = append(l.States, deletesState())
	l.Hidden = c.rows.hidden()
}

// deletesState holds the places of tombstones; NULL if there was none.
func deletesState() job.StateColumn {
	t, e := "t."+ident(job.DeletesColumn), "e."+ident(job.DeletesColumn)
	both := fmt.Sprintf("(SELECT * FROM jsonb_each_text(%s) UNION ALL SELECT * FROM jsonb_each_text(%s)) AS b", t, e)
	known := fmt.Sprintf("jsonb_agg(%s) FILTER (WHERE %[1]s IS NOT NULL)", e)
	many := "jsonb_array_elements(" + known + ") AS o(m), jsonb_each_text(o.m) AS b"
	return job.StateColumn{
		Name: job.DeletesColumn, Type: "jsonb", Aggregate: greatestOf(many),
		Combine: fmt.Sprintf("CASE WHEN %s IS NULL THEN %s WHEN %[2]s IS NULL THEN %[1]s ELSE %[3]s END",
			t, e, greatestOf(both)),
	}
}

// greatestOf returns the object of the greatest value of each name, as PostgreSQL text.
func greatestOf(entries string) string {
	greatest := "SELECT b.key AS k, max(b.value" + collateC + ") AS v FROM " + entries + " GROUP BY b.key"
	return "(SELECT jsonb_object_agg(u.k, u.v) FROM (" + greatest + ") AS u)"
}

// hidden returns the PostgreSQL condition over a stored row s under which a tombstone has deleted it.
func (r *rowQuery) hidden() string {
	place := "s." + ident(job.PlaceColumn)
	word := func(i int) string { return fmt.Sprintf("split_part(%s, ' ', %d)", place, i) }
	first, topics := 1, 0 // index of the first word of [topic] partition offset
	if r.order == "" {
		first = 2
	}
	partition := word(first)
	if r.topic == "" {
		topics, partition = 1, word(first)+" || ' ' || "+word(first+1)
	}
	at := word(1)
	if r.order != "" {
		at = word(topics + 3)
	}
	deletes := "s." + ident(job.DeletesColumn)
	own := fmt.Sprintf("d.k LIKE 'o %%' AND d.v%s > %s", collateC, word(first+topics+1))
	other := fmt.Sprintf("d.k LIKE 't %%' AND d.v%s > %s", collateC, at)
	return fmt.Sprintf("%s IS NOT NULL AND (%s IS NULL OR EXISTS (SELECT FROM jsonb_each_text(%[1]s) AS d(k, v) "+
		"WHERE CASE WHEN substr(d.k, 3) = %[3]s THEN %[4]s ELSE %[5]s END))", deletes, place, partition, own, other)
}

// latestTexts adds the key guards and the hidden columns of an upsert.
func (c *Compiled) latestTexts(texts map[string]string) {
	types := map[string]string{}
	for _, it := range c.rows.items {
		types[it.name] = it.typ
	}
	deleted := "p." + ident(deletedAlias)
	var missing []string
	for _, k := range c.rows.keys {
		missing = append(missing, "p."+ident(k)+" IS NULL")
	}
	const cure = "; a tombstone has its record key only: take the column from it, such as coalesce(id, decode(_key)) AS id"
	detail := fmt.Sprintf("CASE WHEN %s THEN %s ELSE '' END", deleted, literal(cure))
	guards := fmt.Sprintf("WHEN %s THEN error('null_key: a column of serve.key is NULL' || %s)",
		strings.Join(missing, " OR "), detail)
	if long := keyGuard(c.Layout.Keys, types); long != "" {
		guards += fmt.Sprintf(" WHEN %s THEN error('key_too_long: the key holds more than %d bytes')", long, maxKeyBytes)
	}
	first := c.rows.keys[0]
	texts[first] = fmt.Sprintf("CASE %s ELSE %s END", guards, texts[first])
	unlessDeleted := func(text string) string { return fmt.Sprintf("CASE WHEN NOT %s THEN %s END", deleted, text) }
	if c.rows.order != "" {
		order := c.orderValue("p")
		texts[job.OrderColumn] = unlessDeleted(fmt.Sprintf(
			"CASE WHEN %s IS NULL THEN error('null_order: serve.order_by is NULL') ELSE %s END",
			order, postgresText(order, types[c.rows.order])))
	}
	partition := c.rows.partitionName("p")
	offset, at := offsetText("p."+ident(placeAlias)), timeText("p."+ident(timeAlias))
	place := []string{at, partition, offset}
	if c.rows.order != "" {
		place = []string{partition, offset, at}
	}
	if c.rows.unnests {
		place = append(place, "format('{:08x}', p."+ident(nthAlias)+")")
	}
	texts[job.PlaceColumn] = unlessDeleted("concat_ws(' ', " + strings.Join(place, ", ") + ")")
	texts[job.DeletesColumn] = fmt.Sprintf(
		`CASE WHEN %s THEN concat('{"o ', %s, '": "', %s, '", "t ', %[2]s, '": "', %[4]s, '"}') END`,
		deleted, partition, offset, at)
}

// partitionName returns the partition of a row of relation p as DuckDB text, with its topic if there are several.
func (r *rowQuery) partitionName(p string) string {
	place := p + "." + ident(placeAlias)
	if r.topic != "" {
		return partitionText(place)
	}
	return fmt.Sprintf("concat(%s.topic, ' ', %s)", place, partitionText(place))
}

// orderValue decides which row of a key is the latest: the declared column, or for times that are NULL the record's own
// time; without a column, the record's time.
func (c *Compiled) orderValue(alias string) string {
	at := alias + "." + ident(timeAlias)
	if c.rows.order == "" {
		return at
	}
	value := alias + "." + ident(c.rows.order)
	i := slices.IndexFunc(c.rows.items, func(col column) bool { return col.name == c.rows.order })
	switch c.rows.items[i].typ {
	case "TIMESTAMP WITH TIME ZONE":
		value = "coalesce(" + value + ", " + at + ")"
	case "TIMESTAMP":
		value = "coalesce(" + value + ", " + at + " AT TIME ZONE 'UTC')"
	}
	return value
}

// latestOracle returns the latest row of each key that no tombstone deletes, from one pass. Its rows are those of the
// query as written, over the records with a value. Only the keys of tombstones come from PARTIAL.
func (c *Compiled) latestOracle(audit bool) string {
	var items, keys, same []string
	for _, it := range c.rows.items {
		items = append(items, "p."+ident(it.name)+" AS "+ident(it.name))
	}
	for _, k := range c.rows.keys {
		keys, same = append(keys, "p."+ident(k)), append(same, fmt.Sprintf("d.%s = p.%[1]s", ident(k)))
	}
	over := func(condition, rows string) string {
		return fmt.Sprintf("WITH %s AS (SELECT * FROM _kappactl_log WHERE %s) SELECT * FROM (%s)",
			SourceRelation, condition, rows)
	}
	deleted := ident(deletedAlias)
	rows, deletes := over("NOT "+deleted, c.numbered(c.rows.written)), over(deleted, c.Partial)
	place := func(row, field string) string { return fmt.Sprintf(`%s.%s."%s"`, row, ident(placeAlias), field) }
	own := place("d", "partition") + " = " + place("p", "partition")
	if c.rows.topic == "" {
		own += " AND " + place("d", "topic") + " = " + place("p", "topic")
	}
	rank := fmt.Sprintf("row_number() OVER (PARTITION BY %s ORDER BY %s DESC, p.%s DESC, p.%s DESC) AS _kappactl_rank",
		strings.Join(keys, ", "), c.orderValue("p"), ident(placeAlias), ident(nthAlias))
	precedes := fmt.Sprintf("CASE WHEN %s THEN %s > %s ELSE d.%s > p.%[4]s END",
		own, place("d", "offset"), place("p", "offset"), ident(timeAlias))
	// The log can only be read once, so it is materialized.
	top := c.topOracle(keys...)
	if audit {
		top = ""
	}
	return strings.Join([]string{
		fmt.Sprintf("WITH _kappactl_log AS MATERIALIZED (%sSELECT * FROM %s),", c.prelude(), SourceRelation),
		fmt.Sprintf("_kappactl_gone AS MATERIALIZED (%s),", deletes),
		fmt.Sprintf("_kappactl_best AS (SELECT *, %s FROM (%s) AS p)", rank, rows),
		fmt.Sprintf("SELECT %s FROM _kappactl_best AS p WHERE p._kappactl_rank = 1", strings.Join(items, ", ")),
		fmt.Sprintf("AND NOT EXISTS (SELECT 1 FROM _kappactl_gone AS d WHERE %s AND %s)",
			strings.Join(same, " AND "), precedes) + top,
	}, " ")
}
