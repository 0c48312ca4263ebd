package query

import (
	"fmt"
	"math"
	"strconv"
)

// span bounds the decimal exponents of finite doubles other than 0. The zero span means unbounded.
type span struct{ least, most int }

// The spans of doubles.
const (
	anyLeast, anyMost = -400, 400
	// A total, mean or spread of whole numbers and decimals, or one of them as a double.
	exactLeast, exactMost = -130, 130
)

func (s span) bounds() (least, most int) {
	if s == (span{}) {
		return anyLeast, anyMost
	}
	return s.least, s.most
}

// safe reports whether all values are far from overflow and underflow.
func (s span) safe() bool {
	least, most := s.bounds()
	return least > -290 && most < 290
}

func sizeOf(number string) span {
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || x == 0 {
		return span{-1, 1}
	}
	e := int(math.Floor(math.Log10(math.Abs(x))))
	return span{e - 1, e + 1}
}

func widest(terms []term) span {
	least, most := 0, 1
	for _, t := range terms {
		if t.kind != kindDouble {
			continue
		}
		l, m := t.size.bounds()
		least, most = min(least, l), max(most, m)
	}
	return span{least, most}
}

func (s span) plus(o span) span {
	l, m := s.bounds()
	ol, om := o.bounds()
	return span{min(l, ol) - 18, max(m, om) + 1}
}

func (s span) times(o span) span {
	l, m := s.bounds()
	ol, om := o.bounds()
	return span{l + ol - 1, m + om + 1}
}

func (s span) over(o span) span {
	l, m := s.bounds()
	ol, om := o.bounds()
	return span{l - om - 1, m - ol + 1}
}

// The macros of the formulas below, for oracles.
const (
	addMacro      = ownPrefix + "add"
	multiplyMacro = ownPrefix + "multiply"
	divideMacro   = ownPrefix + "divide"
)

// doubleMacros returns the definitions of the macros.
func doubleMacros() []string {
	macro := func(name, body string) string {
		return fmt.Sprintf("CREATE TEMP MACRO %s(a, b) AS %s", name, body)
	}
	return []string{
		macro(addMacro, guardedSum("a", "b")), macro(multiplyMacro, guardedProduct("a", "b")),
		macro(divideMacro, guardedQuotient("a", "b")),
	}
}

// The following texts are valid in PostgreSQL and DuckDB and have the same value there. They are the sum, product and
// quotient of two doubles, but results beyond 1.6e308 are infinite and results below 1e-300 are 0, so that PostgreSQL
// raises no error. Division by 0 gives infinity or NaN, whatever the sign of the 0.

const infinity = "'Infinity'::double precision"

func guardedSum(a, b string) string {
	quarter := func(x string) string { return fmt.Sprintf("CASE WHEN abs(%[1]s) < 1 THEN 0 ELSE %[1]s * 0.25 END", x) }
	half := "(" + quarter(a) + ") + (" + quarter(b) + ")"
	return fmt.Sprintf("CASE WHEN abs(%[1]s) < 4e307 AND abs(%[2]s) < 4e307 THEN %[1]s + %[2]s "+
		"WHEN abs(%[3]s) < 4e307 THEN (%[3]s) * 4 ELSE sign(%[3]s) * %[4]s END", a, b, half, infinity)
}

func guardedProduct(a, b string) string {
	return fmt.Sprintf("CASE WHEN %[1]s = 0 OR %[2]s = 0 THEN %[1]s * %[2]s "+
		"WHEN abs(%[1]s) >= 1 AND abs(%[2]s) >= 1 THEN CASE WHEN abs(%[1]s) > 1.6e308 / abs(%[2]s) "+
		"THEN sign(%[1]s) * sign(%[2]s) * %[3]s ELSE %[1]s * %[2]s END "+
		"WHEN abs(%[1]s) < 1 AND abs(%[2]s) < 1 THEN CASE WHEN abs(%[1]s) < 1e-300 / abs(%[2]s) THEN 0 "+
		"ELSE %[1]s * %[2]s END ELSE %[1]s * %[2]s END", a, b, infinity)
}

func guardedQuotient(a, b string) string {
	return fmt.Sprintf("CASE WHEN %[2]s = 0 THEN %[4]s WHEN %[2]s = 'NaN'::double precision THEN %[2]s "+
		"WHEN abs(%[2]s) >= 1 THEN CASE WHEN abs(%[1]s) < 1e-300 * abs(%[2]s) THEN 0 ELSE %[1]s / %[2]s END "+
		"WHEN abs(%[1]s) > 1.6e308 * abs(%[2]s) THEN sign(%[1]s) * sign(%[2]s) * %[3]s ELSE %[1]s / %[2]s END",
		a, b, infinity, overZero(a))
}

// overZero is a double divided by 0. NaN is the greatest double in both engines.
func overZero(a string) string {
	return fmt.Sprintf("CASE WHEN %[1]s = 0 OR %[1]s = 'NaN'::double precision THEN 'NaN'::double precision "+
		"ELSE sign(%[1]s) * %[2]s END", a, infinity)
}

// doubleArithmetic writes +, -, * and / of two doubles.
func doubleArithmetic(op string, a, b term) term {
	out := with(kindDouble, "DOUBLE", a, b)
	macro := map[string]string{"+": addMacro, "-": addMacro, "*": multiplyMacro, "/": divideMacro}[op]
	guarded, second := guardedSum, b
	switch op {
	case "+", "-":
		out.size = a.size.plus(b.size)
		if op == "-" {
			second.pg, second.duck = "-("+b.pg+")", "-("+b.duck+")"
		}
	case "*":
		out.size, guarded = a.size.times(b.size), guardedProduct
	case "/":
		out.size, guarded = a.size.over(b.size), guardedQuotient
	}
	if out.size.safe() && a.size.safe() && b.size.safe() {
		if op != "/" {
			out.pg, out.duck = fmt.Sprintf("(%s) %s (%s)", a.pg, op, b.pg), fmt.Sprintf("(%s) %s (%s)", a.duck, op, b.duck)
			return out
		}
		guarded = func(a, b string) string {
			return fmt.Sprintf("CASE WHEN %[2]s = 0 THEN %[3]s ELSE %[1]s / %[2]s END", a, b, overZero(a))
		}
	}
	out.pg = let([]string{a.pg, second.pg}, func(n []string) string { return guarded(n[0], n[1]) })
	out.duck = fmt.Sprintf("%s(%s, %s)", macro, a.duck, second.duck)
	if op != "/" {
		out.size = span{}
	}
	return out
}

// rounded is a double rounded to a whole number, halves away from zero, as std::round does. PostgreSQL's own round()
// rounds halves to the even number.
func rounded(y string) string {
	return fmt.Sprintf("CASE WHEN abs(%[1]s) < 4503599627370496 THEN trunc(%[1]s) + CASE WHEN abs(%[1]s - trunc(%[1]s)) "+
		">= 0.5 THEN sign(%[1]s) ELSE 0 END ELSE %[1]s END", y)
}
