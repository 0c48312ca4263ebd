package query

import (
	"fmt"
	"strings"
)

// momentForm returns the form of a function of means and spreads over values of DuckDB types, or nil. Integers and
// decimals are kept as exact sums, doubles as distances from their mean.
func momentForm(function string, types []string) *form {
	pair := arguments(function) == 2
	var of []fixed
	for _, t := range types {
		if f, ok := fixedType(t); ok {
			of = append(of, f)
		}
	}
	exact := len(of) > 0 && len(of) == len(types)
	if higher(function) {
		return higherForm(function, of)
	}
	switch {
	case momentFinish(function, spreadSums{}) == "":
		return nil
	case exact && pair:
		return exactPair(function, of[0], of[1])
	case exact:
		return exactSpread(function, of[0])
	case pair:
		return doublePair(function)
	}
	return doubleSpread(function)
}

// spreadSums holds the texts that the functions are built from: the sums of squared distances from the mean, of each
// variable or of the only one, and of the products of two.
type spreadSums struct {
	per        func(sum, count string) string // a sum divided by a count
	xx, yy, c  string
	some, more string // conditions that xx and yy are greater than zero
	slope      string // factor of the quotient of c and xx
}

// momentFinish computes a function of these sums. The text is valid in PostgreSQL and DuckDB.
func momentFinish(function string, m spreadSums) string {
	const all, less = "{__n}", "({__n} - 1)"
	per := m.per
	if per == nil {
		per = func(sum, count string) string { return sum + " / " + count }
	}
	when := func(least int, value string) string {
		return fmt.Sprintf("CASE WHEN {__n} > %d THEN %s END", least, value)
	}
	const nan = "'NaN'::double precision"
	switch function {
	case "var_pop":
		return when(0, per(m.xx, all))
	case "var_samp":
		return when(1, per(m.xx, less))
	case "stddev_pop":
		return when(0, "sqrt("+per(m.xx, all)+")")
	case "stddev_samp":
		return when(1, "sqrt("+per(m.xx, less)+")")
	case "covar_pop":
		return when(0, per(m.c, all))
	case "covar_samp":
		return when(1, per(m.c, less))
	case "corr":
		return when(0, fmt.Sprintf("CASE WHEN %s AND %s THEN %s / sqrt(%s) / sqrt(%s) ELSE %s END",
			m.some, m.more, m.c, m.xx, m.yy, nan))
	case "regr_slope":
		return when(0, fmt.Sprintf("CASE WHEN %s THEN %s / %s%s ELSE %s END", m.some, m.c, m.xx, m.slope, nan))
	case "regr_r2":
		return when(0, fmt.Sprintf("CASE WHEN %s THEN CASE WHEN %s THEN %s / %s * %[3]s / %[5]s ELSE 1 END END",
			m.some, m.more, m.c, m.xx, m.yy))
	default:
		return ""
	}
}

// knownBoth is the condition under which a pair of values counts. In SQL the first argument is y and the second x; the
// texts of the parts number arguments by position, so there x is the first.
const knownBoth = "x IS NOT NULL AND y IS NOT NULL"

// exactSpread returns the form over one variable that is a whole number divided by a power of ten. n·Σx² - (Σx)² is n
// times the sum of squared distances from the mean, exactly.
func exactSpread(function string, f fixed) *form {
	whole := f.whole("x")
	out := &form{stored: "count + sums", parts: []part{
		{suffix: "__n", value: "count(x)", merge: mergeSum},
		{suffix: "__x", value: wideSum(whole, f.digits), merge: mergeSum},
		{suffix: "__xx", value: productSum(whole, whole, f.digits, f.digits), merge: mergeSum},
	}}
	return out.exactly(function, func(m func(a, b, product string) string) spreadSums {
		return spreadSums{per: perCount(2 * f.scale), xx: m("__x", "__x", "__xx")}
	})
}

// exactPair does the same for two variables.
func exactPair(function string, y, x fixed) *form {
	ys := "CASE WHEN y IS NOT NULL THEN " + y.whole("x") + " END"
	xs := "CASE WHEN x IS NOT NULL THEN " + x.whole("y") + " END"
	out := &form{stored: "count + sums", parts: []part{
		{suffix: "__n", value: "count(*) FILTER (WHERE " + knownBoth + ")", merge: mergeSum},
		{suffix: "__y", value: wideSum(ys, y.digits), merge: mergeSum},
		{suffix: "__x", value: wideSum(xs, x.digits), merge: mergeSum},
		{suffix: "__c", value: productSum(ys, xs, y.digits, x.digits), merge: mergeSum},
		{suffix: "__xx", value: productSum(xs, xs, x.digits, x.digits), merge: mergeSum},
		{suffix: "__yy", value: productSum(ys, ys, y.digits, y.digits), merge: mergeSum},
	}}
	return out.exactly(function, func(m func(a, b, product string) string) spreadSums {
		xx, yy := m("__x", "__x", "__xx"), m("__y", "__y", "__yy")
		return spreadSums{
			per: perCount(x.scale + y.scale), xx: xx, yy: yy, c: m("__x", "__y", "__c"),
			some: xx + " > 0", more: yy + " > 0", slope: shifted(x.scale - y.scale),
		}
	})
}

// exactly adds FINISH and the oracle, which compute n·Σab - Σa·Σb in their engines' exact numbers: PostgreSQL's numeric
// and DuckDB's BIGNUM. The rest of the computation is the same in doubles, so that both give the same digits.
func (f *form) exactly(function string, of func(func(a, b, product string) string) spreadSums) *form {
	f.finish = momentFinish(function, of(func(a, b, product string) string {
		return fmt.Sprintf("({__n} * {%s} - {%s} * {%s})::double precision", product, a, b)
	}))
	text := func(suffix string) string { return "CAST({" + suffix + "} AS VARCHAR)" }
	once := *f
	once.finish = momentFinish(function, of(func(a, b, product string) string {
		return fmt.Sprintf("CAST(CAST(%s(%s, %s) - %[1]s(%[4]s, %[5]s) AS VARCHAR) AS DOUBLE)",
			timesMacro, text("__n"), text(product), text(a), text(b))
	}))
	f.oracle = once.once()
	return f
}

// perCount divides n times a sum by n and a count, and by a power of ten.
func perCount(scale int) func(sum, count string) string {
	return func(sum, count string) string {
		return fmt.Sprintf("%s / ({__n}::double precision * %s)%s", sum, count, shifted(-scale))
	}
}

// shifted returns the text that multiplies by 10^n.
func shifted(n int) string {
	switch {
	case n > 0:
		return fmt.Sprintf(" * 1e%d::double precision", n)
	case n < 0:
		return fmt.Sprintf(" / 1e%d::double precision", -n)
	}
	return ""
}

// productSum returns the sum of products of two whole numbers with at most so many digits, as DuckDB text. Products of
// more than 38 digits are added in four parts, as in long multiplication.
func productSum(a, b string, digitsA, digitsB int) string {
	if digitsA+digitsB <= 38 {
		return wideSum("("+a+") * ("+b+")", digitsA+digitsB)
	}
	half := power(19)
	high := func(x string) string { return "((" + x + ") // " + half + ")" }
	low := func(x string) string { return "((" + x + ") % " + half + ")" }
	sum := func(products string) string { return "(" + wideSum(products, 38) + ")" }
	moved := func(sum string, zeros int) string {
		return fmt.Sprintf("CAST(CAST(%s AS VARCHAR) || '%s' AS BIGNUM)", sum, strings.Repeat("0", zeros))
	}
	return moved(sum(high(a)+" * "+high(b)), 38) + " + " +
		moved(sum(high(a)+" * "+low(b))+" + "+sum(low(a)+" * "+high(b)), 19) + " + " + sum(low(a)+" * "+low(b))
}

const (
	// farthest is the largest double for which spreads are computed: squares of distances, and their sums, stay in
	// range.
	farthest = "1e140"
	// flat is the sum of squares below which values count as equal: merging cannot keep its digits, and PostgreSQL
	// raises errors on numbers that are too small.
	flat = "1e-260"
)

// doubleSpread returns the form of a function of count, mean and the sum of squared distances from the mean. If a value
// is not finite, or beyond farthest, the spread is NaN on every split.
func doubleSpread(function string) *form {
	const calm = "CASE WHEN abs(x) <= " + farthest + " THEN x END"
	unlessWild := func(value string) string {
		return "CASE WHEN count(x) > count(" + calm + ") THEN CAST('NaN' AS DOUBLE) ELSE " + value + " END"
	}
	out := &form{
		stored: "count + mean + squares", approx: true, finish: momentFinish(function, spreadSums{xx: floored("{__m2}")}),
		parts: []part{
			{suffix: "__n", value: "count(x)", merge: mergeSum},
			{suffix: "__mean", value: unlessWild(mean(calm, "")), merge: mergeMean, with: []string{"__n"}},
			{
				suffix: "__m2", merge: mergeProduct, with: []string{"__n", "__mean", "__mean"},
				value: unlessWild("coalesce(var_pop(" + calm + ") * count(x), 0)"),
			},
		},
	}
	out.oracle = out.once()
	return out
}

// floored returns a sum of squares, or 0 if it is below flat.
func floored(sum string) string {
	return "(CASE WHEN " + sum + " < " + flat + " THEN 0 ELSE " + sum + " END)"
}

// doublePair returns the form of a function of two variables.
func doublePair(function string) *form {
	const both = " FILTER (WHERE " + knownBoth + ")"
	const calm = " FILTER (WHERE abs(x) <= " + farthest + " AND abs(y) <= " + farthest + ")"
	unlessWild := func(value string) string {
		return "CASE WHEN count(*)" + both + " > count(*)" + calm + " THEN CAST('NaN' AS DOUBLE) ELSE " + value + " END"
	}
	squares := func(argument string) string {
		return unlessWild(fmt.Sprintf("coalesce(var_pop(%s)%s * count(*)%[2]s, 0)", argument, calm))
	}
	// If two variables are uncorrelated, rounding leaves a remainder near 0 that depends on the split. A correlation
	// below one millionth therefore counts as zero.
	const together = "(CASE WHEN {__c} = 'NaN'::double precision THEN {__c} " +
		"WHEN {__xx} < " + flat + " OR {__yy} < " + flat +
		" THEN 0 WHEN abs({__c}) <= 1e-6 * sqrt({__xx}) * sqrt({__yy}) THEN 0 ELSE {__c} END)"
	out := &form{
		stored: "count + means + products", approx: true,
		finish: momentFinish(function, spreadSums{
			xx: "{__xx}", yy: "{__yy}", c: together, some: "{__xx} >= " + flat, more: "{__yy} >= " + flat,
		}),
		parts: []part{
			{suffix: "__n", value: "count(*)" + both, merge: mergeSum},
			{suffix: "__y", value: unlessWild(mean("x", calm)), merge: mergeMean, with: []string{"__n"}},
			{suffix: "__x", value: unlessWild(mean("y", calm)), merge: mergeMean, with: []string{"__n"}},
			{
				suffix: "__c", merge: mergeProduct, with: []string{"__n", "__x", "__y"},
				value: unlessWild("coalesce(covar_pop(x, y)" + calm + " * count(*)" + calm + ", 0)"),
			},
			{suffix: "__xx", value: squares("y"), merge: mergeProduct, with: []string{"__n", "__x", "__x"}},
			{suffix: "__yy", value: squares("x"), merge: mergeProduct, with: []string{"__n", "__y", "__y"}},
		},
	}
	out.oracle = out.once()
	return out
}

// mean returns the mean of an argument. It is exact if all values are equal, so that their spread is exactly 0 on every
// split.
func mean(argument, where string) string {
	return fmt.Sprintf("coalesce(CASE WHEN min(%s)%s = max(%[1]s)%[2]s THEN CAST(min(%[1]s)%[2]s AS DOUBLE) "+
		"ELSE favg(%[1]s)%[2]s END, 0)", argument, where)
}
