package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// outerTable is the table with the columns of the inner statement that expressions are bound to.
const outerTable = ownPrefix + "inner"

// typeOuter binds the expressions above the aggregation and writes them in the SQL of both engines.
func (c *compiler) typeOuter(ctx context.Context) error {
	if c.outer == nil {
		return nil
	}
	c.refuseDerivedKeys()
	var err error
	if c.stored, err = c.states(ctx); err != nil {
		return err
	}
	leaves, columns := map[string]term{}, []column{}
	for _, it := range c.items {
		columns = append(columns, column{it.name, it.asked})
		if t, ok := it.leaf(); ok {
			leaves[it.name] = t
		}
	}
	for _, k := range c.outer.consts {
		col, t, ok, err := c.evaluated(ctx, k)
		if err != nil {
			return err
		}
		columns = append(columns, col)
		if ok {
			leaves[k.name] = t
		}
	}
	bound, err := c.bindOuter(ctx, columns)
	if err != nil || bound == nil {
		return err
	}
	f := &finisher{leaves: leaves}
	for i := range c.outer.columns {
		if col := &c.outer.columns[i]; col.item < 0 {
			col.value = c.finished(f, bound[0], col.asked, col.name)
			col.pg = viewType(col.value)
			bound = bound[1:]
		}
	}
	if c.outer.having != nil {
		having := c.finished(f, bound[0], c.outer.condition, havingName)
		if having.kind != kindBool && having.pg != "" {
			c.refused.add(firstPlace(c.outer.having), "HAVING is not a condition", "compare with a value: HAVING count(*) > 1")
		}
		c.outer.terms = map[string]term{"having": having}
		bound = bound[1:]
	}
	for i := range c.outer.orders {
		c.outer.orders[i].value = c.finished(f, bound[i], c.outer.orders[i].node, orderName)
	}
	if c.outer.limit != "" {
		c.tieBreakers()
	}
	return nil
}

// refuseDerivedKeys refuses functions of keys that are doubles: the two zeroes are one key, and a function may tell
// them apart.
func (c *compiler) refuseDerivedKeys() {
	zeroes := slices.ContainsFunc(c.items, func(it item) bool { return it.key && !it.derived && doubles(it.duck) })
	for _, it := range c.items {
		if it.derived && zeroes {
			c.refused.add(it.at, named(it.name, "it is a function of keys that are doubles, whose two zeroes are one key"),
				"add the expression to GROUP BY")
		}
	}
}

// leaf returns an item as a part of expressions; ok is false for types over which nothing is computed.
func (it item) leaf() (t term, ok bool) {
	k, ok := kindOf(it.asked)
	if !ok {
		return term{}, false
	}
	t = term{duck: "q." + ident(it.name), kind: k, typ: it.asked}
	if it.key {
		t.pg = "s." + ident(it.name)
	} else {
		t.pg, t.approx = it.call.finish(), it.call.form.approx
	}
	if it.duck != it.asked {
		t.duck = fmt.Sprintf("CAST(%s AS %s)", t.duck, it.asked)
	}
	switch {
	case k == kindNumber:
		t.pg = "(" + t.pg + ")::numeric"
	case k == kindDouble && !it.key && !t.approx && !slices.ContainsFunc(it.call.types, doubles):
		t.size = span{exactLeast, exactMost}
	}
	return t, true
}

// evaluated returns the value of a constant expression.
func (c *compiler) evaluated(ctx context.Context, k constant) (col column, t term, ok bool, err error) {
	text, err := c.selected(ctx, "SELECT 1", []tree{k.node})
	if err != nil {
		return column{}, term{}, false, err
	}
	described, err := c.session.columns(ctx, text)
	if err != nil {
		return column{k.name, "INTEGER"}, term{}, false, nil // bindOuter reports it
	}
	col = column{k.name, described[0].typ}
	kind, ok := kindOf(col.typ)
	if !ok {
		return col, term{}, false, nil
	}
	rows, err := c.session.texts(ctx, fmt.Sprintf("SELECT coalesce(%s, ''), CAST(v IS NULL AS VARCHAR) FROM (%s) AS q (v)",
		postgresText("v", col.typ), text))
	if err != nil || len(rows) != 1 {
		c.refused.add(placeOf(k.node), "a constant part of the expression fails", "write its value")
		return col, term{}, false, nil
	}
	t = term{pg: literal(rows[0][0]) + "::" + string(kind), kind: kind, typ: col.typ}
	if rows[0][1] == "true" {
		t.pg = "NULL::" + string(kind)
	}
	t.duck = strings.TrimPrefix(text, "SELECT ")
	if kind == kindDouble {
		t.size = sizeOf(rows[0][0])
	}
	return col, t, true, nil
}

// selected returns a statement with a select list of its own, as text.
func (c *compiler) selected(ctx context.Context, statement string, list []tree) (string, error) {
	parsed, err := c.session.parse(ctx, statement)
	if err != nil {
		return "", fmt.Errorf("parse %s: %w", statement, err)
	}
	items := make([]any, len(list))
	for i, e := range list {
		e = e.clone()
		e["alias"] = ""
		items[i] = map[string]any(e)
	}
	parsed[0].child("node")["select_list"] = items
	strip(parsed[0])
	return c.session.write(ctx, parsed[0])
}

// bindOuter returns the bound expressions: those of columns, of HAVING and of ORDER BY; nil if there are none or they
// do not bind.
func (c *compiler) bindOuter(ctx context.Context, columns []column) ([]tree, error) {
	var list []tree
	for _, col := range c.outer.columns {
		if col.item < 0 {
			list = append(list, col.node)
		}
	}
	if c.outer.having != nil {
		list = append(list, c.outer.having)
	}
	for _, o := range c.outer.orders {
		list = append(list, o.node)
	}
	if len(list) == 0 {
		return []tree{}, nil
	}
	if err := c.session.exec(ctx, "CREATE OR REPLACE TEMP TABLE "+outerTable+" ("+columnList(columns)+")"); err != nil {
		return nil, fmt.Errorf("declare the columns of the aggregation: %w", err)
	}
	text, err := c.selected(ctx, "SELECT 1 FROM "+outerTable, list)
	if err != nil {
		return nil, err
	}
	plans, err := c.session.plan(ctx, text)
	var ee *engineError
	if errors.As(err, &ee) {
		cause, _, _ := strings.Cut(ee.message, "\n")
		c.refused.add(firstPlace(list[0]), "the expressions over aggregates do not bind: "+cause,
			"select each aggregate as a column of its own and compute with it in serve.columns")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(plans) != 1 || plans[0].kind() != "LOGICAL_PROJECTION" || len(plans[0].list("expressions")) != len(list) {
		return nil, errors.New("bind the expressions over aggregates: unexpected plan")
	}
	return plans[0].list("expressions"), nil
}

// The names of clauses in messages.
const (
	havingName = "HAVING"
	orderName  = "ORDER BY"
)

// finished writes a bound expression, or refuses it.
func (c *compiler) finished(f *finisher, bound, written tree, name string) term {
	t, err := f.term(bound)
	if err == nil {
		return t
	}
	cure := "select each aggregate as a column of its own and compute this one in serve.columns"
	text, first, ok := c.overView(written)
	switch {
	case name == havingName && ok:
		cure = "remove it; " + first + "write serve.where: " + yamlText(text)
	case name == havingName:
		cure = "select the aggregates and move the condition to serve.where, over the view's columns"
	case name == orderName:
		cure = "select the value, and order and limit when reading the view"
	case ok:
		cure = "remove it; " + first + "write serve.columns: {" + yamlText(name) + ": " + yamlText(text) + "}"
	}
	cause := "over merged aggregates, PostgreSQL and DuckDB may compute different results for " + err.Error()
	if name == havingName || name == orderName {
		cause = name + ": " + cause
	} else {
		cause = named(name, cause)
	}
	c.refused.add(firstPlace(written), cause, cure)
	return term{}
}

// viewType returns the PostgreSQL type that readers see.
func viewType(t term) string {
	if t.kind != kindNumber {
		return string(t.kind)
	}
	if pg, _ := resultType(t.typ); !decimal(t.typ) {
		return pg
	}
	return "numeric"
}

// served returns the PostgreSQL text of a column. Whole numbers outside the range of their type, over which DuckDB
// raises an error, are NULL. Doubles have no negative zero.
func (t term) served() string {
	switch pg := viewType(t); {
	case t.kind == kindDouble:
		return "(" + t.pg + ") + 0"
	case t.kind == kindNumber && pg != "numeric" && t.ranged:
		return "(" + t.pg + ")::" + pg
	case t.kind != kindNumber || pg == "numeric":
		return t.pg
	default:
		most := map[string]string{"smallint": "32767", "integer": "2147483647", "bigint": "9223372036854775807"}[pg]
		return let([]string{t.pg}, func(n []string) string {
			return fmt.Sprintf("CASE WHEN %[1]s BETWEEN -%[2]s - 1::numeric AND %[2]s THEN (%[1]s)::%[3]s END", n[0], most, pg)
		})
	}
}

// answered returns the DuckDB text of a column and its type.
func (t term) answered() (text, duck string) {
	switch {
	case t.kind != kindNumber || t.ranged:
		return t.duck, t.typ
	case decimal(t.typ):
		return t.duck, t.typ
	}
	return fmt.Sprintf("TRY_CAST(%s AS %s)", t.duck, t.typ), t.typ
}

// outerView returns the columns that readers see.
func (c *compiler) outerView() []job.ViewColumn {
	var out []job.ViewColumn
	for _, col := range c.outer.columns {
		if col.item >= 0 {
			v := c.viewColumn(c.items[col.item])
			v.Name = col.name
			out = append(out, v)
			continue
		}
		out = append(out, job.ViewColumn{
			Name: col.name, Type: col.pg, StoredAs: "computed from aggregates", Exact: !col.value.approx, Loose: col.value.loose,
			Finish: col.value.served(),
		})
	}
	return out
}

// addOuter adds HAVING and LIMIT to a layout.
func (c *compiler) addOuter(l *job.Layout) {
	if c.outer == nil {
		return
	}
	if c.outer.having != nil {
		l.Having = c.outer.terms["having"].pg
	}
	if c.outer.limit != "" {
		l.Top = "ORDER BY " + strings.Join(c.orderTexts(true), ", ") + " " + c.outer.limit
	}
}

// orderTexts returns the terms of ORDER BY with the keys as tie breakers, for PostgreSQL or DuckDB.
func (c *compiler) orderTexts(postgres bool) []string {
	var out []string
	for _, o := range c.outer.orders {
		text := "(" + o.value.duck + ")"
		if postgres {
			text = o.value.ordered()
		}
		out = append(out, text+" "+o.how)
	}
	for _, it := range c.items {
		if !it.key || it.derived {
			continue
		}
		text := "q." + ident(it.name)
		if postgres {
			text = "s." + ident(it.name)
			if textual(it.pg) {
				text += collateC
			}
		}
		out = append(out, text+" ASC NULLS LAST")
	}
	if len(out) == 0 { // one row
		return []string{"(1 + 0)"}
	}
	return out
}

// outerOracles returns the query over the rows of the inner statement, and the same with all rows and hidden keys.
func (c *compiler) outerOracles(inner string) (oracle, audit string) {
	var list, keys []string
	for _, col := range c.outer.columns {
		text := ""
		if col.item >= 0 {
			text = "q." + ident(c.items[col.item].name)
		} else {
			text, _ = col.value.answered()
		}
		list = append(list, text+" AS "+ident(col.name))
	}
	for _, it := range c.hiddenKeys() {
		keys = append(keys, "q."+ident(it.name)+" AS "+ident(it.name))
	}
	from := " FROM (" + inner + ") AS q"
	audit = "SELECT " + strings.Join(append(keys, list...), ", ") + from
	oracle = "SELECT " + strings.Join(list, ", ") + from
	if c.outer.having != nil {
		oracle += " WHERE " + c.outer.terms["having"].duck
	}
	if c.outer.limit != "" {
		oracle += " ORDER BY " + strings.Join(c.orderTexts(false), ", ") + " " + c.outer.limit
	}
	return oracle, audit
}

// hiddenKeys returns the group keys that readers do not see, in the order of the layout.
func (c *compiler) hiddenKeys() []item {
	var out []item
	for _, it := range c.items {
		if it.key && it.hidden {
			out = append(out, it)
		}
	}
	slices.SortStableFunc(out, func(a, b item) int { return timeFirst(timeKey(a.pg), timeKey(b.pg)) })
	return out
}

// outerAnswers returns the query's columns with their DuckDB types.
func (c *compiler) outerAnswers() []column {
	var out []column
	for _, col := range c.outer.columns {
		if col.item >= 0 {
			out = append(out, column{col.name, c.items[col.item].duck})
			continue
		}
		_, duck := col.value.answered()
		out = append(out, column{col.name, duck})
	}
	return out
}
