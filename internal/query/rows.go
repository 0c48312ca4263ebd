package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// The hidden columns of the relations that a row job's statements are made of.
const (
	deletedAlias    = "_kappactl_deleted" // the record is a tombstone
	nthAlias        = "_kappactl_n"       // which of the record's rows
	tombstoneColumn = "_tombstone"        // the meta column behind deletedAlias
)

// rowQuery is how a query without aggregation becomes rows: one a row of the query (job.Rows), or the latest of a key
// (job.Latest).
type rowQuery struct {
	items   []column // the select list
	keys    []string // serve.key; none: the rows are appended
	order   string   // serve.order_by, or empty
	unnests bool     // a record may give several rows
	topic   string   // the one topic; empty when there are several
}

// latest says that the latest row of a key wins.
func (r *rowQuery) latest() bool { return len(r.keys) > 0 }

// rowJob takes a query without aggregation: its select list is the row.
func (c *compiler) rowJob(list []tree) bool {
	if len(c.node.list("group_expressions")) > 0 || c.node.text("aggregate_handling") == "FORCE_AGGREGATES" {
		return false
	}
	for _, e := range list {
		if c.aggregates(e) {
			return false
		}
	}
	c.rows = &rowQuery{keys: c.spec.Serve.Key, order: c.spec.Serve.OrderBy}
	if len(c.spec.Source.Topics) == 1 {
		c.rows.topic = c.spec.Source.Topics[0]
	}
	shaped := len(c.refused.problems) == 0
	for _, e := range list {
		it := item{name: e.alias(), node: e, at: firstPlace(e)}
		if names := e.texts("column_names"); it.name == "" && e.class() == classColumn {
			it.name = names[len(names)-1]
		}
		if e.class() == classStar {
			if shaped {
				c.refused.add(it.at, "a star in the outermost select list takes in whatever is declared later", "name the columns")
			}
			continue
		}
		c.projected(e)
		if it.name == "" {
			c.refused.add(it.at, "the column has no name", "name it: … AS name")
		}
		it.key = slices.Contains(c.rows.keys, it.name)
		c.items = append(c.items, it)
	}
	each(c.statement, func(n tree) bool {
		c.rows.unnests = c.rows.unnests || (n.class() == classFunction && n.function() == "unnest")
		return true
	})
	c.checkNames()
	c.checkRowSettings()
	return true
}

// checkRowSettings refuses serve.key and serve.order_by that the select list does not have.
func (c *compiler) checkRowSettings() {
	var names []string
	for _, it := range c.items {
		names = append(names, it.name)
	}
	for i, k := range c.rows.keys {
		if !slices.Contains(names, k) {
			c.refused.serve(fmt.Sprintf("key[%d]", i), fmt.Sprintf("%q is not a column of the query", k), "use columns of the query: "+describe(names...))
		}
	}
	if c.rows.order != "" && !slices.Contains(names, c.rows.order) {
		c.refused.serve("order_by", fmt.Sprintf("%q is not a column of the query", c.rows.order), "use a column of the query: "+describe(names...))
	}
	for i, index := range c.spec.Serve.Indexes {
		for _, name := range index {
			if !slices.Contains(names, name) {
				c.refused.serve(fmt.Sprintf("indexes[%d]", i), fmt.Sprintf("%q is not a column of the version table", name), "index columns of the query: "+describe(names...))
			}
		}
	}
	if c.spec.Live.LaneCount() > 1 {
		c.refused.problems = append(c.refused.problems, c.spec.Problem("live.lanes", job.PostgreSQL,
			"live.lanes is for queries with an aggregate: rows are written once or by key, and nothing merges them", "remove it"))
	}
}

// typeRow refuses what cannot be a key or decide which row is the latest.
func (c *compiler) typeRow(it *item) {
	if it.key {
		if cause, cure := keyProblem(it.duck, it.pg); cause != "" {
			c.refused.add(it.at, named(it.name, cause), strings.ReplaceAll(cure, "group by", "need"))
		}
	}
	if it.name == c.rows.order && !comparable(it.duck, it.pg) {
		c.refused.add(it.at, named(it.name, "values of "+it.duck+" have another order in PostgreSQL"), "order by a number, a text or a time")
	}
	c.rows.items = append(c.rows.items, column{it.name, it.duck})
}

// deriveRows is derive for a query without aggregation.
func (c *compiler) deriveRows(ctx context.Context) (*Compiled, error) {
	forms, err := c.templates(ctx)
	if err != nil {
		return nil, err
	}
	carried := forms.carried(true, false)
	out := &Compiled{Fields: c.fields(), source: c.source, places: true, oneTopic: c.rows.topic != "", rows: c.rows}
	statement := c.statement.clone()
	node := statement.child("node")
	if c.rows.latest() {
		extra, err := c.session.parse(ctx, fmt.Sprintf("SELECT %s, x OR %[1]s", ident(deletedAlias)))
		if err != nil {
			return nil, fmt.Errorf("parse templates: %w", err)
		}
		list := extra[0].child("node").list("select_list")
		carried = append(carried, list[0])
		letTombstonesPass(statement, list[1])
	}
	carry(node, carried)
	var list []any
	for _, it := range c.items {
		e := it.node.clone()
		e["alias"] = it.name
		list = append(list, map[string]any(e))
	}
	for _, e := range carried {
		list = append(list, map[string]any(e.clone()))
	}
	node["select_list"] = list
	inline(node)
	strip(statement)
	if out.Partial, err = c.session.write(ctx, statement); err != nil {
		return nil, err
	}
	out.Oracle, out.Audit = out.rowOracle(false), out.rowOracle(true)
	out.Layout, out.answers = c.rowLayout(), c.rows.items
	return out, nil
}

// letTombstonesPass lets tombstones through every filter: they delete by their key, and have no other values to filter by.
func letTombstonesPass(statement, or tree) {
	each(statement, func(n tree) bool {
		if where := n.child("where_clause"); where != nil && n.kind() == nodeSelect {
			n["where_clause"] = map[string]any(fill(or, map[string]tree{"x": where}))
		}
		return true
	})
}

// rowLayout is the stored form of rows: the place in the log, or serve.key, is their key.
func (c *compiler) rowLayout() job.Layout {
	l := job.Layout{Shape: job.Rows, Where: c.spec.Serve.Where}
	types := map[string]string{}
	for _, it := range c.items {
		types[it.name] = it.pg
		v := job.ViewColumn{Name: it.name, Type: it.pg, Finish: "s." + ident(it.name), StoredAs: "value", Exact: true, Key: it.key}
		if it.key {
			v.StoredAs = "key"
		}
		l.View = append(l.View, v)
	}
	latest := ""
	if c.rows.latest() {
		l.Shape, latest = job.Latest, " ORDER BY "+latestFirst("e", c.rows.order != "")
		for _, k := range c.rows.keys {
			l.Keys = append(l.Keys, job.KeyColumn{Name: k, Type: stored(types[k])})
		}
	} else {
		for _, k := range [][2]string{{job.TopicColumn, "text" + collateC}, {job.PartitionColumn, "integer"}, {job.OffsetColumn, "bigint"}, {job.NthColumn, "integer"}} {
			l.Keys = append(l.Keys, job.KeyColumn{Name: k[0], Type: k[1]})
		}
	}
	state := func(name, typ string) {
		e := "e." + ident(name)
		l.States = append(l.States, job.StateColumn{Name: name, Type: typ, Combine: e, Aggregate: "(array_agg(" + e + latest + "))[1]"})
	}
	for _, it := range c.items {
		if !it.key {
			state(it.name, stored(it.pg))
		}
	}
	if c.rows.latest() {
		if c.rows.order != "" {
			state(job.OrderColumn, stored(types[c.rows.order]))
		}
		state(job.PlaceColumn, "text"+collateC)
		state(job.DeletedColumn, "boolean")
	}
	l.View = append(l.View, c.computed(l)...)
	c.checkRowKeep(l)
	return l
}

// checkRowKeep refuses serve.keep without a time that says how old a row is, and for the latest rows of keys: an older row of
// a key whose latest one is deleted would come to light again when it arrives late.
func (c *compiler) checkRowKeep(l job.Layout) {
	switch {
	case c.spec.Serve.Keep <= 0:
	case l.Shape == job.Latest:
		c.refused.serve("keep", "serve.keep is for rollups and for rows that are appended, not for the latest row of a key",
			"remove it; tombstones delete rows, and serve.where hides old ones: where: seen > now() - interval '90 days'")
	case rowTime(l) == "":
		c.refused.serve("keep", "serve.keep needs a time among the columns of the query", "add a column of type date, timestamp or timestamptz to the query, or remove serve.keep")
	}
}

// rowTime is the first column of appended rows that is a time.
func rowTime(l job.Layout) string {
	i := slices.IndexFunc(l.View, func(v job.ViewColumn) bool { return !v.Computed && timeKey(v.Type) })
	if l.Shape != job.Rows || i < 0 {
		return ""
	}
	return l.View[i].Name
}

// latestFirst is an ORDER BY of stored rows that puts the latest first, as PostgreSQL text.
func latestFirst(alias string, ordered bool) string {
	by := alias + "." + ident(job.PlaceColumn) + " DESC"
	if ordered {
		by = alias + "." + ident(job.OrderColumn) + " DESC, " + by
	}
	return by
}

// numbered is Partial with the number of each row of a record. Rows of one record are numbered by their content, so that
// every run numbers them alike.
func (c *Compiled) numbered() string {
	n := "0"
	if c.rows.unnests {
		by := make([]string, len(c.rows.items))
		for i, it := range c.rows.items {
			by[i] = ident(it.name)
		}
		n = fmt.Sprintf("row_number() OVER (PARTITION BY %s ORDER BY %s) - 1", ident(placeAlias), strings.Join(by, ", "))
	}
	return fmt.Sprintf("SELECT *, CAST(%s AS INTEGER) AS %s FROM (%s)", n, ident(nthAlias), c.Partial)
}

// landRows is Land of a query without aggregation. Rows have lane 0.
func (c *Compiled) landRows(lanes int) string {
	texts := map[string]string{}
	for _, it := range c.rows.items {
		texts[it.name] = postgresText("p."+ident(it.name), it.typ)
	}
	if c.rows.latest() {
		c.latestTexts(texts)
	} else {
		place := "p." + ident(placeAlias)
		texts[job.TopicColumn] = place + ".topic"
		if c.rows.topic != "" {
			texts[job.TopicColumn] = literal(c.rows.topic)
		}
		texts[job.PartitionColumn] = "CAST(" + place + ".partition AS VARCHAR)"
		texts[job.OffsetColumn] = "CAST(" + place + `."offset" AS VARCHAR)`
		texts[job.NthColumn] = "CAST(p." + ident(nthAlias) + " AS VARCHAR)"
	}
	names, _ := c.Layout.StagedColumns()
	items := []string{"'0' AS " + job.LaneColumn}
	for _, n := range names[1:] {
		items = append(items, texts[n]+" AS "+ident(n))
	}
	return c.prelude(lanes) + "SELECT " + strings.Join(items, ", ") + " FROM (" + c.numbered() + ") AS p"
}

// latestTexts adds the guards of the key and the hidden columns of an upsert.
func (c *Compiled) latestTexts(texts map[string]string) {
	types := map[string]string{}
	for _, it := range c.rows.items {
		types[it.name] = it.typ
	}
	var missing []string
	for _, k := range c.rows.keys {
		missing = append(missing, "p."+ident(k)+" IS NULL")
	}
	guards := fmt.Sprintf("WHEN %s THEN error('null_key: a column of serve.key is NULL')", strings.Join(missing, " OR "))
	if long := keyGuard(c.Layout.Keys, types); long != "" {
		guards += fmt.Sprintf(" WHEN %s THEN error('key_too_long: the key holds more than %d bytes')", long, maxKeyBytes)
	}
	first := c.rows.keys[0]
	texts[first] = fmt.Sprintf("CASE %s ELSE %s END", guards, texts[first])
	topic := ""
	if c.rows.topic == "" {
		topic = "topic "
	}
	place := placeText(fmt.Sprintf("{%s: p.%[1]s, %s: p.%[2]s}", ident(timeAlias), ident(placeAlias)), timeAlias+" "+topic)
	if c.rows.order != "" {
		order := c.orderValue("p")
		texts[job.OrderColumn] = fmt.Sprintf("CASE WHEN %s IS NULL THEN error('null_order: serve.order_by is NULL') ELSE %s END", order, postgresText(order, types[c.rows.order]))
		place = placeText("p."+ident(placeAlias), topic)
	}
	if c.rows.unnests {
		place += " || format(' {:08x}', p." + ident(nthAlias) + ")"
	}
	texts[job.PlaceColumn] = place
	texts[job.DeletedColumn] = "CAST(p." + ident(deletedAlias) + " AS VARCHAR)"
}

// orderValue is what decides which row of a key is the latest: the declared column, for times the record's own where it is
// NULL, as it is for tombstones; else the record's time.
func (c *Compiled) orderValue(alias string) string {
	at := alias + "." + ident(timeAlias)
	if c.rows.order == "" {
		return at
	}
	value := alias + "." + ident(c.rows.order)
	switch i := slices.IndexFunc(c.rows.items, func(col column) bool { return col.name == c.rows.order }); c.rows.items[i].typ {
	case "TIMESTAMP WITH TIME ZONE":
		value = "coalesce(" + value + ", " + at + ")"
	case "TIMESTAMP":
		value = "coalesce(" + value + ", " + at + " AT TIME ZONE 'UTC')"
	}
	return value
}

// rowOracle is the query's rows from one pass, with their place in the log in front when audit asks for it; of an upsert the
// latest row of each key, unless that deletes it.
func (c *Compiled) rowOracle(audit bool) string {
	var items []string
	if audit && !c.rows.latest() {
		place := "p." + ident(placeAlias)
		topic := place + ".topic"
		if c.rows.topic != "" {
			topic = literal(c.rows.topic)
		}
		items = append(items, topic+" AS "+job.TopicColumn, place+".partition AS "+job.PartitionColumn, place+`."offset" AS `+job.OffsetColumn,
			"p."+ident(nthAlias)+" AS "+job.NthColumn)
	}
	keys := make([]string, len(c.rows.keys))
	for i, k := range c.rows.keys {
		keys[i] = "p." + ident(k)
	}
	for _, it := range c.rows.items {
		items = append(items, "p."+ident(it.name)+" AS "+ident(it.name))
	}
	text := c.prelude(1) + "SELECT " + strings.Join(items, ", ") + " FROM (" + c.numbered() + ") AS p"
	if !c.rows.latest() {
		return text
	}
	order := c.orderValue("p")
	return c.prelude(1) + fmt.Sprintf(`SELECT %s FROM (SELECT *, row_number() OVER (PARTITION BY %s ORDER BY %s DESC, p.%s DESC, p.%s DESC) AS _kappactl_rank FROM (%s) AS p) AS p WHERE _kappactl_rank = 1 AND NOT %s`,
		strings.Join(items, ", "), strings.Join(keys, ", "), order, ident(placeAlias), ident(nthAlias), c.numbered(), ident(deletedAlias))
}
