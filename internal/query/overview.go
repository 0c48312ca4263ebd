package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// viewTerms writes expressions over aggregates as PostgreSQL computes them from the view's columns.
type viewTerms struct {
	c       *compiler
	missing []string // aggregates that the select list lacks, as items to add
}

// overView returns an expression over aggregates as SQL for serve.where or serve.columns, and what to add to the select
// list first. ok is false if PostgreSQL might compute some part differently.
func (c *compiler) overView(e tree) (text, first string, ok bool) {
	v := &viewTerms{c: c}
	text, ok = v.term(e)
	if len(v.missing) > 0 {
		first = "add " + strings.Join(v.missing, ", ") + " to the select list; "
	}
	return text, first, ok
}

// yamlText returns a text as a YAML scalar.
func yamlText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func (v *viewTerms) term(e tree) (string, bool) {
	if name := v.selected(e); name != "" {
		return ident(name), true
	}
	if n, ok := e.integer(); ok {
		return strconv.Itoa(n), true
	}
	switch e.class() {
	case classCompare:
		op := map[string]string{
			"COMPARE_EQUAL": "=", "COMPARE_NOTEQUAL": "<>", "COMPARE_LESSTHAN": "<", "COMPARE_GREATERTHAN": ">",
			"COMPARE_LESSTHANOREQUALTO": "<=", "COMPARE_GREATERTHANOREQUALTO": ">=",
		}[e.kind()]
		return v.joined([]tree{e.child("left"), e.child("right")}, op)
	case classAnd:
		return v.joined(e.list("children"), map[string]string{"CONJUNCTION_AND": "AND", "CONJUNCTION_OR": "OR"}[e.kind()])
	case classOperator:
		if e.kind() != "OPERATOR_COALESCE" {
			return "", false
		}
		terms, ok := v.terms(e.list("children"))
		return "coalesce(" + strings.Join(terms, ", ") + ")", ok
	case classFunction:
		return v.function(e)
	}
	return "", false
}

// function writes arithmetic, or an aggregate that the select list lacks.
func (v *viewTerms) function(e tree) (string, bool) {
	children := e.list("children")
	switch f := e.function(); {
	case slices.Contains([]string{"+", "-", "*"}, f) && len(children) == 2:
		return v.joined(children, f)
	case f == "/" && len(children) == 2: // integers give a fraction, and division by zero gives NULL
		terms, ok := v.terms(children)
		if !ok {
			return "", false
		}
		return fmt.Sprintf("%s::double precision / nullif(%s, 0)", terms[0], terms[1]), true
	case v.c.functions.aggregate(f):
		return v.lacking(e, children)
	}
	return "", false
}

// lacking names an aggregate of a column, or of all records, for the select list.
func (v *viewTerms) lacking(e tree, children []tree) (string, bool) {
	f := e.function()
	if e.child("filter") != nil || e.flag("distinct") || len(e.child("order_bys").list("orders")) > 0 || !mergeable(f) {
		return "", false
	}
	call, name := "count(*)", "records"
	if f != "count_star" {
		if len(children) != 1 || children[0].class() != classColumn || len(children[0].texts("column_names")) != 1 {
			return "", false
		}
		column := children[0].texts("column_names")[0]
		call, name = f+"("+ident(column)+")", f+"_"+column
	}
	if v.taken(name) {
		return "", false
	}
	item := call + " AS " + ident(name)
	if !slices.Contains(v.missing, item) {
		v.missing = append(v.missing, item)
	}
	return ident(name), true
}

// selected returns the name of the view column with this expression; empty if there is none.
func (v *viewTerms) selected(e tree) string {
	relation := relationName(v.c.node.child("from_table"))
	for _, it := range v.c.asked() {
		name := it.alias()
		if names := it.texts("column_names"); name == "" && it.class() == classColumn {
			name = names[len(names)-1]
		}
		byName := e.class() == classColumn && slices.Equal(e.texts("column_names"), []string{name})
		if name != "" && (byName || it.signature(relation) == e.signature(relation)) {
			if it.class() == classFunction && v.c.functions.aggregate(it.function()) || !v.c.aggregates(it) {
				return name
			}
		}
	}
	return ""
}

func (v *viewTerms) taken(name string) bool {
	return slices.ContainsFunc(v.c.asked(), func(it tree) bool {
		names := it.texts("column_names")
		return strings.EqualFold(it.alias(), name) || len(names) > 0 && strings.EqualFold(names[len(names)-1], name)
	})
}

// joined writes terms with an operator between them.
func (v *viewTerms) joined(list []tree, op string) (string, bool) {
	terms, ok := v.terms(list)
	return strings.Join(terms, " "+op+" "), ok && op != ""
}

// terms writes the parts of a term, in parentheses if they have parts of their own.
func (v *viewTerms) terms(list []tree) ([]string, bool) {
	var out []string
	for _, e := range list {
		text, ok := v.term(e)
		if !ok {
			return nil, false
		}
		if strings.Contains(text, " ") && v.selected(e) == "" {
			text = "(" + text + ")"
		}
		out = append(out, text)
	}
	return out, len(out) > 0
}
