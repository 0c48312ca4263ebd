package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// fixed is a type of integers or decimals: a value is a whole number of at most digits digits, divided by 10^scale.
type fixed struct{ digits, scale int }

// fixedType returns the fixed type of a DuckDB type; ok is false for doubles and non-numeric types.
func fixedType(duck string) (f fixed, ok bool) {
	base, args := splitType(duck)
	switch base {
	case "TINYINT", "UTINYINT":
		return fixed{digits: 3}, true
	case "SMALLINT", "USMALLINT":
		return fixed{digits: 5}, true
	case "INTEGER", "UINTEGER":
		return fixed{digits: 10}, true
	case "BIGINT":
		return fixed{digits: 19}, true
	case "UBIGINT":
		return fixed{digits: 20}, true
	case "HUGEINT":
		return fixed{digits: 38}, true
	case "DECIMAL":
		_, err := fmt.Sscanf(args, "(%d,%d)", &f.digits, &f.scale)
		return f, err == nil
	}
	return fixed{}, false
}

// whole returns the whole number of a value x as HUGEINT, in DuckDB.
func (f fixed) whole(x string) string {
	switch {
	case f.scale == 0:
		return "CAST(" + x + " AS HUGEINT)"
	case f.digits <= 18:
		return fmt.Sprintf("CAST(CAST(%s AS DECIMAL(38,%d)) * %s AS HUGEINT)", x, f.scale, power(f.scale))
	}
	return "CAST(replace(CAST(" + x + " AS VARCHAR), '.', '') AS HUGEINT)"
}

// power returns 10^n as a text of digits.
func power(n int) string { return "1" + strings.Repeat("0", n) }

// sureDigits is the number of digits of whole numbers of which a trillion add up within 128 bits.
const sureDigits = 26

// wideSum returns the sum of HUGEINTs with at most that many digits, over any number of records, in DuckDB. Sums that
// may exceed 128 bits use BIGNUM, which is slow and therefore used only for large numbers.
func wideSum(whole string, digits int) string {
	if digits <= sureDigits {
		return "coalesce(sum(" + whole + "), 0)"
	}
	return fmt.Sprintf("CAST(coalesce(sum(CASE WHEN abs(%[1]s) < %[2]s THEN %[1]s END), 0) AS BIGNUM) + "+
		"coalesce(sum(CASE WHEN abs(%[1]s) >= %[2]s THEN CAST(%[1]s AS BIGNUM) END), CAST(0 AS BIGNUM))", whole,
		power(sureDigits))
}

// totalForm returns the form of sum and avg over values of a DuckDB type.
func totalForm(function, duck string) *form {
	f, exact := fixedType(duck)
	switch {
	case duck == "DOUBLE" || duck == "FLOAT":
		return doubleTotal(function)
	case exact && f.digits > sureDigits:
		return wideTotal(function, f)
	}
	out := &form{
		stored: "sum + count", parts: totalParts("coalesce(sum(x), 0)"),
		finish: "CASE WHEN {__n} > 0 THEN {__s} END",
	}
	if function == "avg" {
		out.finish = "CASE WHEN {__n} > 0 THEN {__s}::double precision / {__n}::double precision END"
		// DuckDB rounds the total before it divides.
		out.oracle = "CAST(CAST(sum(x) AS VARCHAR) AS DOUBLE) / count(x)"
	}
	return out
}

func totalParts(sum string) []part {
	return []part{
		{suffix: "__s", value: sum, merge: mergeSum},
		{suffix: "__n", value: "count(x)", merge: mergeSum},
	}
}

// wideTotal returns the form of a total that may exceed DuckDB's 128 bits. It is stored as a whole number.
func wideTotal(function string, f fixed) *form {
	sum := wideSum(f.whole("x"), f.digits)
	stored, text := "{__s}", fmt.Sprintf("%s(CAST(%s AS VARCHAR), %d)", decimalMacro, sum, f.scale)
	if f.scale > 0 {
		stored += " * 0." + strings.Repeat("0", f.scale-1) + "1"
	}
	out := &form{stored: "sum + count", parts: totalParts(sum)}
	if function == "avg" {
		out.finish = "CASE WHEN {__n} > 0 THEN (" + stored + ")::double precision / {__n}::double precision END"
		out.oracle = "CAST(" + text + " AS DOUBLE) / count(x)"
		return out
	}
	out.finish = "CASE WHEN {__n} > 0 THEN " + stored + " END"
	out.oracle = "CASE WHEN count(x) > 0 THEN " + text + " END"
	out.typ, out.duck = "numeric", "VARCHAR"
	return out
}

// Totals of doubles are stored divided by 2^40, which changes no digit. A trillion of the largest doubles then do not
// overflow on any split, in either engine. Totals below 1e-287 lose digits.
const (
	doubleShift = 40
	// negligible is the bound below which a dividend counts as 0: PostgreSQL raises an error if the result is too
	// small.
	negligible = "1e-305"
)

// doubleDown returns 2^-40 in digits.
func doubleDown() string { return strconv.FormatFloat(math.Ldexp(1, -doubleShift), 'g', -1, 64) }

// doubleTotal returns the form of a total or mean of doubles. A result too large for a double is Infinity.
func doubleTotal(function string) *form {
	down, up := doubleDown(), strconv.FormatInt(1<<doubleShift, 10)
	most := strconv.FormatFloat(math.Ldexp(math.MaxFloat64, -doubleShift), 'g', -1, 64)
	back := func(x string) string {
		return fmt.Sprintf("CASE WHEN abs(%[1]s) <= %[2]s THEN %[1]s * %[3]s "+
			"ELSE sign(%[1]s) * 'Infinity'::double precision END", x, most, up)
	}
	out := &form{
		stored: "sum + count", approx: true, parts: totalParts("coalesce(sum(x * CAST(" + down + " AS DOUBLE)), 0)"),
		finish: "CASE WHEN {__n} > 0 THEN " + back("{__s}") + " END",
	}
	if function == "avg" {
		mean := back("({__s} / {__n}::double precision)")
		out.finish = "CASE WHEN {__n} > 0 THEN CASE WHEN abs({__s}) < " + negligible + " THEN 0 ELSE " + mean + " END END"
	}
	out.oracle = out.once()
	return out
}

// once returns FINISH over one part, as DuckDB text: the value of a single pass over the whole log.
func (f *form) once() string {
	text := f.finish
	for _, p := range f.parts {
		text = strings.ReplaceAll(text, "{"+p.suffix+"}", "("+p.value+")")
	}
	return text
}
