package query

import (
	"fmt"
	"strings"
)

// listing is a call of an aggregate that keeps the first values of an order, up to limit. The state is a sorted JSON
// list of entries; an entry is a list of texts in PostgreSQL's syntax: the terms of the order, the place in the log,
// the value.
type listing struct {
	value, duck string // DuckDB text and type of the value
	orders      []listOrder
	place       int // 1: rows of equal order are ordered by place in the log; -1: backwards; 0: they are equal
	limit       int
	where       string // FILTER clause, or empty
	oneTopic    bool
}

// listOrder is one term of ORDER BY.
type listOrder struct {
	value, duck string
	desc        bool
	nullsFirst  bool
}

func (o listOrder) how() string {
	how := " ASC"
	if o.desc {
		how = " DESC"
	}
	if o.nullsFirst {
		return how + " NULLS FIRST"
	}
	return how + " NULLS LAST"
}

// reversed returns the opposite order.
func reversed(orders []listOrder) []listOrder {
	out := make([]listOrder, len(orders))
	for i, o := range orders {
		out[i] = listOrder{value: o.value, duck: o.duck, desc: !o.desc, nullsFirst: !o.nullsFirst}
	}
	return out
}

// nested reports whether the value is kept as JSON.
func (l listing) nested() bool {
	pg, _ := resultType(l.duck)
	return pg == "jsonb" || strings.HasSuffix(pg, "[]")
}

// valueText returns the text of the value in an entry.
func (l listing) valueText() string {
	if l.nested() && l.duck != "JSON" {
		return jsonText(l.value, l.duck)
	}
	return postgresText(l.value, l.duck)
}

// terms returns the texts of an entry, and by which terms entries are ordered in DuckDB.
func (l listing) terms() (entry, order []string) {
	for _, o := range l.orders {
		entry = append(entry, postgresText(o.value, o.duck))
		order = append(order, o.value+o.how())
	}
	how := map[int]string{-1: " DESC", 1: " ASC"}[l.place]
	if l.place != 0 {
		topic := ident(placeAlias) + ".topic, "
		if l.oneTopic {
			topic = ""
		}
		place := fmt.Sprintf("concat_ws(' ', %s, %s%s, %s)", timeText(ident(timeAlias)), topic,
			partitionText(ident(placeAlias)),
			offsetText(ident(placeAlias)))
		entry, order = append(entry, place), append(order, place+how+" NULLS LAST")
	}
	value := l.valueText()
	return append(entry, value), append(order, value+" NULLS LAST")
}

// part returns the state.
func (l listing) part() part {
	entry, order := l.terms()
	list := fmt.Sprintf("list([%s] ORDER BY %s)%s", strings.Join(entry, ", "), strings.Join(order, ", "), l.where)
	return part{
		suffix: "__list", merge: mergeList, limit: l.limit, order: l.postgresOrder(),
		value: fmt.Sprintf("coalesce(list_slice(%s, 1, %d), [])", list, l.limit),
	}
}

// postgresOrder returns the order of entries r.
func (l listing) postgresOrder() string {
	var out []string
	for i, o := range l.orders {
		pg, _ := resultType(o.duck)
		text := fmt.Sprintf("(r->>%d)::%s", i, pg)
		if textual(pg) {
			text = "(" + text + ")" + collateC
		}
		out = append(out, text+o.how())
	}
	n := len(l.orders)
	if l.place != 0 {
		out = append(out, fmt.Sprintf("(r->>%d)%s%s", n, collateC, map[int]string{-1: " DESC", 1: " ASC"}[l.place]))
		n++
	}
	return strings.Join(append(out, fmt.Sprintf("(r->>%d)%s NULLS LAST", n, collateC)), ", ")
}

// at is the index of the value in an entry.
func (l listing) at() int {
	if l.place != 0 {
		return len(l.orders) + 1
	}
	return len(l.orders)
}

// order returns the order of rows in DuckDB.
func (l listing) order() string {
	_, order := l.terms()
	return strings.Join(order, ", ")
}

// elements returns the PostgreSQL text of the stored values as an array or a JSON list.
func (l listing) elements() string {
	from := " FROM jsonb_array_elements({__list}) WITH ORDINALITY AS u(r, i)"
	if l.nested() {
		return fmt.Sprintf("(SELECT jsonb_agg((u.r->>%d)::jsonb ORDER BY u.i)%s)", l.at(), from)
	}
	pg, _ := resultType(l.duck)
	return fmt.Sprintf("ARRAY(SELECT (u.r->>%d)::%s%s ORDER BY u.i)", l.at(), pg, from)
}

// upTo returns a PostgreSQL text for 1 to limit entries; otherwise NULL.
func upTo(limit int, text string) string {
	return fmt.Sprintf("CASE WHEN jsonb_array_length({__list}) BETWEEN 1 AND %d THEN %s END", limit, text)
}

// all returns the form of list(x). With more than limit - 1 values the result is NULL.
func (l listing) all() *form {
	few := l.limit - 1
	return &form{
		stored: fmt.Sprintf("up to %d values in order", few), ties: l.place != 0, listed: true, parts: []part{l.part()},
		finish: upTo(few, l.elements()),
		oracle: fmt.Sprintf("CASE WHEN count(*)%s BETWEEN 1 AND %d THEN list(%s ORDER BY %s)%[1]s END", l.where, few, l.value,
			l.order()),
	}
}

// joined returns the form of string_agg(x, separator). With more than limit - 1 values the result is NULL.
func (l listing) joined(separator string) *form {
	out := l.all()
	out.finish = upTo(l.limit-1, fmt.Sprintf("(SELECT string_agg(u.r->>%d, %s ORDER BY u.i) FROM "+
		"jsonb_array_elements({__list}) WITH ORDINALITY AS u(r, i))", l.at(), literal(separator)))
	out.oracle = fmt.Sprintf("CASE WHEN count(*)%s BETWEEN 1 AND %d THEN string_agg(%s, %s ORDER BY %s)%[1]s END", l.where,
		l.limit-1, l.value, literal(separator), l.order())
	return out
}

// top returns the form of the first limit values as a list.
func (l listing) top() *form {
	return &form{
		stored: fmt.Sprintf("the first %d values", l.limit), ties: l.place != 0, listed: true, parts: []part{l.part()},
		finish: upTo(l.limit, l.elements()),
		oracle: fmt.Sprintf("list_slice(list(%s ORDER BY %s)%s, 1, %d)", l.value, l.order(), l.where, l.limit),
	}
}

// only returns the form of the first value.
func (l listing) only() *form {
	l.limit = 1
	pg, _ := resultType(l.duck)
	value := fmt.Sprintf("({__list}->0->>%d)", l.at())
	switch {
	case pg == "jsonb":
		value += "::jsonb"
	case strings.HasSuffix(pg, "[]"):
		item := strings.TrimSuffix(pg, "[]")
		value = fmt.Sprintf("CASE WHEN %[1]s IS NOT NULL THEN ARRAY(SELECT (u.v #>> '{}')::%[2]s FROM "+
			"jsonb_array_elements(%[1]s::jsonb) WITH ORDINALITY AS u(v, i) ORDER BY u.i) END", value, item)
	default:
		value += "::" + pg
	}
	return &form{
		stored: "value + order", ties: l.place != 0, listed: true, parts: []part{l.part()}, finish: value,
		oracle: fmt.Sprintf("first(%s ORDER BY %s)%s", l.value, l.order(), l.where),
	}
}

// combineList merges two sorted lists of entries.
func (s *state) combineList() string {
	return s.firstOf(fmt.Sprintf("jsonb_array_elements(t.%s || e.%[1]s) AS u(r)", ident(s.name)))
}

// aggregateList does the same over many rows.
func (s *state) aggregateList() string {
	return s.firstOf(fmt.Sprintf("jsonb_array_elements(jsonb_agg(e.%s)) AS o(m), jsonb_array_elements(o.m) AS u(r)",
		ident(s.name)))
}

func (s *state) firstOf(entries string) string {
	return fmt.Sprintf("(SELECT coalesce(jsonb_agg(r ORDER BY %[1]s), '[]') FROM (SELECT u.r FROM %[2]s ORDER BY %[1]s LIMIT %[3]d) "+
		"AS u)", s.order, entries, s.limit)
}
