package query

import (
	"fmt"
	"strings"
)

// higher reports whether a function needs sums of third or fourth powers.
func higher(function string) bool {
	return function == "skewness" || function == "kurtosis" || function == "kurtosis_pop"
}

// higherForm returns the form of skewness and kurtosis over whole numbers and decimals: exact sums of powers. It
// returns nil for other types.
func higherForm(function string, of []fixed) *form {
	if len(of) != 1 || of[0].digits > 19 {
		return nil
	}
	f := of[0]
	whole := f.whole("x")
	square := "((" + whole + ") * (" + whole + "))"
	out := &form{
		stored: "count + sums of powers", approx: true, parts: []part{
			{suffix: "__n", value: "count(x)", merge: mergeSum},
			{suffix: "__x", value: wideSum(whole, f.digits), merge: mergeSum},
			{suffix: "__xx", value: productSum(whole, whole, f.digits, f.digits), merge: mergeSum},
			{suffix: "__xxx", value: productSum(square, whole, 2*f.digits, f.digits), merge: mergeSum},
		},
	}
	// n²·m2, n³·m3 and n⁴·m4, where m are the means of powers of distances from the mean
	const second = "({__n} * {__xx} - {__x} * {__x})"
	const third = "({__n} * {__n} * {__xxx} - 3 * {__n} * {__x} * {__xx} + 2 * {__x} * {__x} * {__x})"
	const fourth = "({__n} * {__n} * {__n} * {__xxxx} - 4 * {__n} * {__n} * {__x} * {__xxx} + 6 * {__n} * {__x} * {__x} * {__xx} " +
		"- 3 * {__x} * {__x} * {__x} * {__x})"
	count := func(text string) string { return strings.ReplaceAll(text, "{__n}", "{__n}::numeric") }
	double := func(text string) string { return count(text) + "::double precision" }
	if function == "skewness" {
		out.finish = fmt.Sprintf("CASE WHEN {__n} > 2 THEN CASE WHEN %s = 0 THEN 'NaN'::double precision ELSE %s / "+
			"(%s * sqrt(%[3]s)) * sqrt((%[4]s)::double precision) / ({__n} - 2) END END", count(second), double(third),
			double(second),
			"{__n} * ({__n} - 1)")
	} else {
		out.parts = append(out.parts, part{
			suffix: "__xxxx", value: productSum(square, square, 2*f.digits, 2*f.digits), merge: mergeSum,
		})
		ratio := fmt.Sprintf("(%s / (%s * %[2]s))", double(fourth), double(second))
		value, least := ratio+" - 3", 1
		if function == "kurtosis" {
			value, least = fmt.Sprintf("({__n} - 1) * (({__n} + 1) * %s - 3 * ({__n} - 1)) / (({__n} - 2)::double precision * "+
				"({__n} - 3))", ratio), 3
		}
		out.finish = fmt.Sprintf("CASE WHEN {__n} > %d AND %s > 0 THEN %s END", least, count(second), value)
	}
	out.oracle = higherOracle(function)
	return out
}

// higherOracle computes the same in doubles around the mean. DuckDB's own functions lose digits of values that lie
// close together.
func higherOracle(function string) string {
	mean := func(power int) string {
		return fmt.Sprintf("list_avg(list_transform(s.l, lambda v: pow(v - s.m, %d)))", power)
	}
	const n = "len(s.l)"
	value := ""
	switch function {
	case "skewness":
		value = fmt.Sprintf("CASE WHEN %s > 2 THEN CASE WHEN %s = 0 THEN CAST('nan' AS DOUBLE) ELSE %s / pow(%[2]s, 1.5) * "+
			"sqrt(%[1]s * (%[1]s - 1)) / (%[1]s - 2) END END", n, mean(2), mean(3))
	case "kurtosis_pop":
		value = fmt.Sprintf("CASE WHEN %s > 1 AND %s > 0 THEN %s / pow(%[2]s, 2) - 3 END", n, mean(2), mean(4))
	default:
		value = fmt.Sprintf("CASE WHEN %s > 3 AND %s > 0 THEN (%[1]s - 1) * ((%[1]s + 1) * %[3]s / pow(%[2]s, 2) - 3 * (%[1]s - 1)) "+
			"/ ((%[1]s - 2) * (%[1]s - 3)) END", n, mean(2), mean(4))
	}
	return "list_transform([{l: list(CAST(x AS DOUBLE)) FILTER (WHERE x IS NOT NULL), m: avg(CAST(x AS DOUBLE))}], lambda s: " +
		value + ")[1]"
}
