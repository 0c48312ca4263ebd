package query

import (
	"fmt"
	"slices"
	"strings"
)

// term is an expression over aggregates and keys, in the SQL of both engines. The two texts have the same value for
// every input, or differ only where DuckDB alone raises an error:
//
//   - whole numbers and decimals are numeric in PostgreSQL, which has no overflow;
//   - an operation that DuckDB refuses for some values, such as sqrt(-1), gives NULL. Such operations are not allowed
//     below CASE, COALESCE and conditions, which could turn the NULL into another value;
//   - doubles are added, multiplied and divided by the formulas of doubles.go, because PostgreSQL raises an error where
//     DuckDB gives infinity or 0.
type term struct {
	pg, duck string
	kind     valueKind
	typ      string // DuckDB type
	approx   bool   // the value depends on the order of additions
	loose    bool   // and a small difference can become a large one: a rounded or compared approximate value
	strict   bool   // NULL where DuckDB raises an error
	ranged   bool   // the value is within the range of typ
	size     span   // of doubles
	text     string // of a constant text
	whole    string // of a constant whole number
}

// valueKind is what PostgreSQL holds a value of a DuckDB type as.
type valueKind string

const (
	kindNumber   valueKind = "numeric"
	kindDouble   valueKind = "double precision"
	kindReal     valueKind = "real"
	kindBool     valueKind = "boolean"
	kindText     valueKind = "text"
	kindDate     valueKind = "date"
	kindTime     valueKind = "timestamp without time zone"
	kindZoned    valueKind = "timestamp with time zone"
	kindInterval valueKind = "interval"
	kindNull     valueKind = ""
)

// kindOf returns the kind of a DuckDB type; ok is false for types over which nothing is computed.
func kindOf(duck string) (k valueKind, ok bool) {
	if _, fixed := fixedType(duck); fixed || duck == "UHUGEINT" {
		return kindNumber, true
	}
	switch duck {
	case "DOUBLE":
		return kindDouble, true
	case "FLOAT":
		return kindReal, true
	case "BOOLEAN":
		return kindBool, true
	case "VARCHAR":
		return kindText, true
	case "DATE":
		return kindDate, true
	case "TIMESTAMP":
		return kindTime, true
	case timestampTZ:
		return kindZoned, true
	case "INTERVAL":
		return kindInterval, true
	}
	return kindNull, false
}

// maxFinish is the largest size of an expression in PostgreSQL, in bytes.
const maxFinish = 20_000

// unknownTerm is returned for what cannot be computed alike in both engines. what names it for people.
type unknownTerm struct{ what string }

func (u unknownTerm) Error() string { return u.what }

func unknown(format string, args ...any) error { return unknownTerm{fmt.Sprintf(format, args...)} }

// finisher writes bound expressions of DuckDB in the SQL of both engines.
type finisher struct {
	leaves map[string]term // columns of the inner statement
	lazy   int             // depth below CASE, COALESCE and conditions
}

// term writes a node of a bound plan.
func (f *finisher) term(n tree) (term, error) {
	t, err := f.node(n)
	switch {
	case err != nil:
		return term{}, err
	case len(t.pg) > maxFinish || len(t.duck) > maxFinish:
		return term{}, unknown("an expression of this size")
	case t.strict && f.lazy > 0:
		return term{}, unknown("an operation that can fail, below CASE, COALESCE or a condition")
	}
	return t, nil
}

func (f *finisher) node(n tree) (term, error) {
	switch n.text("expression_class") {
	case "BOUND_REF", "BOUND_COLUMN_REF":
		t, ok := f.leaves[n.alias()]
		if !ok {
			return term{}, unknown("values of this type")
		}
		return t, nil
	case "BOUND_CONSTANT":
		return constantTerm(n.child("value"))
	case "BOUND_CAST":
		of, err := f.term(n.child("child"))
		if err != nil {
			return term{}, err
		}
		if n.flag("try_cast") {
			return term{}, unknown("TRY_CAST")
		}
		return castTerm(of, duckType(n.child("return_type")))
	case "BOUND_COMPARISON":
		return f.comparison(n)
	case "BOUND_CONJUNCTION":
		return f.joined(n)
	case "BOUND_CASE":
		return f.caseTerm(n)
	case "BOUND_OPERATOR":
		return f.operator(n)
	case "BOUND_BETWEEN":
		return term{}, unknown("BETWEEN")
	case "BOUND_FUNCTION":
		args, err := f.terms(n.list("children"))
		if err != nil {
			return term{}, err
		}
		return functionTerm(strings.ToLower(n.text("name")), args, duckType(n.child("return_type")))
	}
	return term{}, unknown("%s", strings.ToLower(strings.TrimPrefix(n.text("expression_class"), "BOUND_")))
}

func (f *finisher) terms(nodes []tree) ([]term, error) {
	out := make([]term, len(nodes))
	for i, n := range nodes {
		var err error
		if out[i], err = f.term(n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// duckType writes a type of a bound plan as DESCRIBE does.
func duckType(t tree) string {
	if id := t.text("id"); id != "DECIMAL" {
		return id
	}
	info := t.child("type_info")
	return fmt.Sprintf("DECIMAL(%v,%v)", info["width"], info["scale"])
}

// with returns a term made of others: it is as approximate as they are.
func with(k valueKind, typ string, of ...term) term {
	out := term{kind: k, typ: typ}
	for _, t := range of {
		out.approx, out.loose = out.approx || t.approx, out.loose || t.loose
		out.strict = out.strict || t.strict
	}
	return out
}

// jumping marks a term whose value jumps where its arguments hardly change.
func (t term) jumping() term {
	t.loose = t.loose || t.approx
	return t
}

// ordered returns the PostgreSQL text of a term for comparisons.
func (t term) ordered() string {
	if t.kind == kindText {
		return "(" + t.pg + ")" + collateC
	}
	return "(" + t.pg + ")"
}

var comparisons = map[string]string{
	"COMPARE_EQUAL": "=", "COMPARE_NOTEQUAL": "<>", "COMPARE_LESSTHAN": "<", "COMPARE_GREATERTHAN": ">",
	"COMPARE_LESSTHANOREQUALTO": "<=", "COMPARE_GREATERTHANOREQUALTO": ">=",
	"COMPARE_DISTINCT_FROM": "IS DISTINCT FROM", "COMPARE_NOT_DISTINCT_FROM": "IS NOT DISTINCT FROM",
}

// condition writes parts whose NULL matters.
func (f *finisher) condition(nodes []tree) ([]term, error) {
	f.lazy++
	defer func() { f.lazy-- }()
	return f.terms(nodes)
}

func (f *finisher) comparison(n tree) (term, error) {
	op, take := comparisons[n.kind()], f.terms
	if strings.Contains(op, "DISTINCT") {
		take = f.condition
	}
	sides, err := take([]tree{n.child("left"), n.child("right")})
	if err != nil {
		return term{}, err
	}
	if op == "" || !sameKind(sides...) {
		return term{}, unknown("this comparison")
	}
	out := with(kindBool, "BOOLEAN", sides...).jumping()
	out.pg = sides[0].ordered() + " " + op + " " + sides[1].ordered()
	out.duck = fmt.Sprintf("(%s) %s (%s)", sides[0].duck, op, sides[1].duck)
	return out, nil
}

// sameKind reports whether terms can be compared. NULL alone fits all.
func sameKind(terms ...term) bool {
	var k valueKind
	for _, t := range terms {
		if t.kind != kindNull && k != kindNull && t.kind != k {
			return false
		}
		if t.kind != kindNull {
			k = t.kind
		}
	}
	return k != kindNull
}

func (f *finisher) joined(n tree) (term, error) {
	op := map[string]string{"CONJUNCTION_AND": " AND ", "CONJUNCTION_OR": " OR "}[n.kind()]
	parts, err := f.terms(n.list("children"))
	if err != nil {
		return term{}, err
	}
	out := with(kindBool, "BOOLEAN", parts...)
	out.pg, out.duck = join(parts, op)
	if op == "" {
		return term{}, unknown("this condition")
	}
	return out, nil
}

// join writes terms with a text between them.
func join(parts []term, between string) (pg, duck string) {
	var p, d []string
	for _, t := range parts {
		p, d = append(p, "("+t.pg+")"), append(d, "("+t.duck+")")
	}
	return strings.Join(p, between), strings.Join(d, between)
}

func (f *finisher) caseTerm(n tree) (term, error) {
	typ := duckType(n.child("return_type"))
	k, ok := kindOf(typ)
	if !ok {
		return term{}, unknown("CASE of %s", typ)
	}
	pg, duck := "CASE", "CASE"
	var values, all []term
	for _, check := range n.list("case_checks") {
		parts, err := f.condition([]tree{check.child("when_expr")})
		if err != nil {
			return term{}, err
		}
		value, err := f.term(check.child("then_expr"))
		if err != nil {
			return term{}, err
		}
		parts = append(parts, retyped(value, typ))
		pg += fmt.Sprintf(" WHEN %s THEN %s", parts[0].pg, parts[1].pg)
		duck += fmt.Sprintf(" WHEN %s THEN %s", parts[0].duck, parts[1].duck)
		values, all = append(values, parts[1]), append(all, parts...)
	}
	if e := n.child("else_expr"); e != nil {
		value, err := f.term(e)
		if err != nil {
			return term{}, err
		}
		value = retyped(value, typ)
		pg, duck = pg+" ELSE "+value.pg, duck+" ELSE "+value.duck
		values, all = append(values, value), append(all, value)
	}
	if !sameKind(append(values, term{kind: k})...) {
		return term{}, unknown("CASE of different types")
	}
	out := with(k, typ, all...)
	out.pg, out.duck, out.size = pg+" END", duck+" END", widest(values)
	return out, nil
}

// retyped gives NULL without a type the type of its surroundings.
func retyped(t term, typ string) term {
	if k, ok := kindOf(typ); t.kind == kindNull && ok {
		t.kind, t.typ, t.pg = k, typ, "NULL::"+string(k)
	}
	return t
}

func (f *finisher) operator(n tree) (term, error) {
	take := f.terms
	if n.kind() != "OPERATOR_NOT" && n.kind() != "COMPARE_IN" && n.kind() != "COMPARE_NOT_IN" {
		take = f.condition
	}
	parts, err := take(n.list("children"))
	if err != nil {
		return term{}, err
	}
	out := with(kindBool, "BOOLEAN", parts...)
	switch n.kind() {
	case "OPERATOR_NOT":
		out.pg, out.duck = "NOT ("+parts[0].pg+")", "NOT ("+parts[0].duck+")"
	case "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL":
		is := map[string]string{"OPERATOR_IS_NULL": " IS NULL", "OPERATOR_IS_NOT_NULL": " IS NOT NULL"}[n.kind()]
		out.pg, out.duck = "("+parts[0].pg+")"+is, "("+parts[0].duck+")"+is
		out.approx, out.loose = false, false // whether there is a value does not depend on the order of additions
	case "COMPARE_IN", "COMPARE_NOT_IN":
		if !sameKind(parts...) {
			return term{}, unknown("IN over different types")
		}
		in := map[string]string{"COMPARE_IN": " IN ", "COMPARE_NOT_IN": " NOT IN "}[n.kind()]
		pg, duck := join(parts[1:], ", ")
		out = out.jumping()
		out.pg, out.duck = parts[0].ordered()+in+"("+pg+")", "("+parts[0].duck+")"+in+"("+duck+")"
	case "OPERATOR_COALESCE":
		typ := duckType(n.child("return_type"))
		for i := range parts {
			parts[i] = retyped(parts[i], typ)
		}
		if !sameKind(parts...) {
			return term{}, unknown("COALESCE of different types")
		}
		out = with(parts[0].kind, typ, parts...)
		pg, duck := join(parts, ", ")
		out.pg, out.duck, out.size = "coalesce("+pg+")", "coalesce("+duck+")", widest(parts)
	default:
		return term{}, unknown("%s", strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(n.kind(), "OPERATOR_"), "_", " ")))
	}
	return out, nil
}

// let returns body over names of arguments. Long arguments are computed once in a subquery.
func let(arguments []string, body func(names []string) string) string {
	names, items := slices.Clone(arguments), []string{}
	for i, a := range arguments {
		if len(a) > 40 {
			names[i] = "u." + string(rune('a'+i))
			items = append(items, a+" AS "+string(rune('a'+i)))
		} else {
			names[i] = "(" + a + ")"
		}
	}
	if len(items) == 0 {
		return body(names)
	}
	return "(SELECT " + body(names) + " FROM (SELECT " + strings.Join(items, ", ") + ") AS u)"
}
