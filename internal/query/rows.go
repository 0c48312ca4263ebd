package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// The hidden columns in the statements of a row job.
const (
	deletedAlias    = "_kappactl_deleted" // the record is a tombstone
	nthAlias        = "_kappactl_n"       // number of the row among those of its record
	tombstoneColumn = "_tombstone"        // the meta column behind deletedAlias
)

// rowQuery describes how a query without aggregation becomes rows: one per row of the query (job.Rows), or the latest
// of each key (job.Latest).
type rowQuery struct {
	items   []column // the select list
	keys    []string // serve.key; empty: the rows are appended
	order   string   // serve.order_by, or empty
	unnests bool     // a record may produce several rows
	topic   string   // the topic; empty if there are several
	top     rowTop
	written string // of the latest of a key: PARTIAL without the additions that let tombstones pass
}

// latest reports whether the latest row of each key is kept.
func (r *rowQuery) latest() bool { return len(r.keys) > 0 }

// rowJob compiles a query without aggregation: its select list is the row.
func (c *compiler) rowJob(list []tree) bool {
	if len(c.node.list("group_expressions")) > 0 || c.node.text("aggregate_handling") == groupByAll ||
		c.node.child("having") != nil {
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
		it := item{name: nameOf(e), node: e, at: firstPlace(e)}
		if e.class() == classStar {
			if shaped {
				c.refused.add(it.at, "a star in the outermost select list would include columns that are declared later",
					"name the columns")
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
	if c.rows.latest() {
		c.refuseDeepUnnest()
	}
	columns := make([]outerColumn, len(c.items))
	for i, it := range c.items {
		columns[i] = outerColumn{name: it.name, at: it.at}
	}
	c.checkNames(columns)
	c.checkRowSettings()
	return true
}

// checkRowSettings refuses serve.key and serve.order_by columns that are not in the select list.
func (c *compiler) checkRowSettings() {
	var names []string
	for _, it := range c.items {
		names = append(names, it.name)
	}
	for i, k := range c.rows.keys {
		if !slices.Contains(names, k) {
			c.refused.serve(fmt.Sprintf("key[%d]", i), fmt.Sprintf("%q is not a column of the query", k),
				"use columns of the query: "+describe(names...))
		}
	}
	if c.rows.order != "" && !slices.Contains(names, c.rows.order) {
		c.refused.serve("order_by", fmt.Sprintf("%q is not a column of the query", c.rows.order),
			"use a column of the query: "+describe(names...))
	}
	for i, index := range c.spec.Serve.Indexes {
		for _, name := range index {
			if !slices.Contains(names, name) {
				c.refused.serve(fmt.Sprintf("indexes[%d]", i), fmt.Sprintf("%q is not a column of the version table", name),
					"index columns of the query: "+describe(names...))
			}
		}
	}
}

// typeRow refuses types that cannot be a key or decide which row is the latest.
func (c *compiler) typeRow(it *item) {
	if it.key {
		if cause, cure := keyProblem(it.duck, it.pg); cause != "" {
			c.refused.add(it.at, named(it.name, cause), strings.ReplaceAll(cure, "group by", "need"))
		}
	}
	if it.name == c.rows.order && !comparable(it.duck, it.pg) {
		c.refused.add(it.at, named(it.name, "values of "+it.duck+" have another order in PostgreSQL"),
			"order by a number, a text or a time")
	}
	c.rows.items = append(c.rows.items, column{it.name, it.duck})
}

// deriveRows is derive for a query without aggregation.
func (c *compiler) deriveRows(ctx context.Context) (*Compiled, error) {
	forms, err := c.templates(ctx)
	if err != nil {
		return nil, err
	}
	carried := forms.carried(true)
	out := &Compiled{Fields: c.fields(), source: c.source, places: true, oneTopic: c.rows.topic != "", rows: c.rows}
	var passes tombstonePasses
	if c.rows.latest() {
		if passes, err = c.tombstonePasses(ctx); err != nil {
			return nil, err
		}
		carried = append(carried, passes.deleted)
	}
	statement := c.rowStatement(carried)
	if c.rows.latest() {
		if c.rows.written, err = c.session.write(ctx, statement); err != nil {
			return nil, err
		}
		passes.add(statement)
	}
	if out.Partial, err = c.session.write(ctx, statement); err != nil {
		return nil, err
	}
	if !c.rows.unnests {
		if out.Sieve, err = c.sieve(ctx, out, statement); err != nil {
			return nil, err
		}
	}
	out.Oracle, out.Audit = out.rowOracle(false), out.rowOracle(true)
	out.Layout, out.answers = c.rowLayout(), c.rows.items
	out.landed, err = c.landedAt(ctx, out.Land(), nil)
	return out, err
}

// rowStatement returns the user's query with the hidden columns of source passed up to its select list.
func (c *compiler) rowStatement(carried []tree) tree {
	statement := c.statement.clone()
	node := statement.child("node")
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
	return statement
}

// rowLayout returns the stored form of rows: their key is the place in the log, or serve.key.
func (c *compiler) rowLayout() job.Layout {
	l := job.Layout{Shape: job.Rows, Where: c.spec.Serve.Where, Lambda: c.spec.Mode == job.Lambda}
	types := map[string]string{}
	for _, it := range c.items {
		types[it.name] = it.pg
		v := job.ViewColumn{
			Name: it.name, Type: it.pg, Finish: "s." + ident(it.name), StoredAs: "value", Exact: true, Key: it.key,
		}
		if it.key {
			v.StoredAs = "key"
		}
		l.View = append(l.View, v)
	}
	if c.rows.latest() {
		c.latestLayout(&l, types)
	} else {
		for _, k := range [][2]string{
			{job.TopicColumn, "text" + collateC},
			{job.PartitionColumn, "integer"},
			{job.OffsetColumn, "bigint"},
			{job.NthColumn, "integer"},
		} {
			l.Keys = append(l.Keys, job.KeyColumn{Name: k[0], Type: k[1]})
		}
		for _, it := range c.items {
			e := "e." + ident(it.name)
			l.States = append(l.States, job.StateColumn{
				Name: it.name, Type: stored(it.pg), Combine: e, Aggregate: "(array_agg(" + e + "))[1]",
			})
		}
	}
	var ties []string
	for _, k := range l.Keys {
		ties = append(ties, "s."+ident(k.Name))
	}
	l.Top = c.topClause(ties)
	l.View = append(l.View, c.serveColumns(l)...)
	c.checkRowKeep(l)
	return l
}

// checkRowKeep refuses serve.keep without a time column that tells a row's age. It also refuses it for the latest rows
// of keys: if a key's latest row were deleted, an older row that arrives late would reappear.
func (c *compiler) checkRowKeep(l job.Layout) {
	switch {
	case c.spec.Serve.Keep <= 0:
	case l.Shape == job.Latest:
		c.refused.serve("keep", "serve.keep is for rollups and for rows that are appended, not for the latest row of a key",
			"remove it; tombstones delete rows, and serve.where hides old ones: where: seen > now() - interval '90 days'")
	case rowTime(l) == "":
		c.refused.serve("keep", "serve.keep needs a time among the columns of the query",
			"add a column of type date, timestamp or timestamptz to the query, or remove serve.keep")
	}
}

// rowTime returns the first time column of appended rows.
func rowTime(l job.Layout) string {
	i := slices.IndexFunc(l.View, func(v job.ViewColumn) bool { return !v.Computed && timeKey(v.Type) })
	if l.Shape != job.Rows || i < 0 {
		return ""
	}
	return l.View[i].Name
}

// numbered returns a SELECT of the query's rows, such as Partial, with the number of each row within its record. Rows
// of one record are ordered by their content, so that every run numbers them alike.
func (c *Compiled) numbered(rows string) string {
	n := "0"
	if c.rows.unnests {
		by := make([]string, len(c.rows.items))
		for i, it := range c.rows.items {
			by[i] = ident(it.name)
		}
		n = fmt.Sprintf("row_number() OVER (PARTITION BY %s ORDER BY %s) - 1", ident(placeAlias), strings.Join(by, ", "))
	}
	return fmt.Sprintf("SELECT *, CAST(%s AS INTEGER) AS %s FROM (%s)", n, ident(nthAlias), rows)
}

// landRows is Land for a query without aggregation.
func (c *Compiled) landRows() string {
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
	items := make([]string, len(names))
	for i, n := range names {
		items[i] = texts[n] + " AS " + ident(n)
	}
	return c.prelude() + "SELECT " + strings.Join(items, ", ") + " FROM (" + c.numbered(c.Partial) + ") AS p"
}

// rowOracle returns the query's rows from one pass, preceded by their place in the log if audit is set. For an upsert
// it returns the latest row of each key, unless it was deleted.
func (c *Compiled) rowOracle(audit bool) string {
	var items []string
	if c.rows.latest() {
		return c.latestOracle(audit)
	}
	if audit {
		place := "p." + ident(placeAlias)
		topic := place + ".topic"
		if c.rows.topic != "" {
			topic = literal(c.rows.topic)
		}
		items = append(items, topic+" AS "+job.TopicColumn, place+".partition AS "+job.PartitionColumn, place+`."offset" AS `+
			job.OffsetColumn,
			"p."+ident(nthAlias)+" AS "+job.NthColumn)
	}
	for _, it := range c.rows.items {
		items = append(items, "p."+ident(it.name)+" AS "+ident(it.name))
	}
	text := c.prelude() + "SELECT " + strings.Join(items, ", ") + " FROM (" + c.numbered(c.Partial) + ") AS p"
	if audit {
		return text
	}
	return text + c.topOracle("p."+ident(placeAlias), "p."+ident(nthAlias))
}
