package query

import (
	"fmt"
	"strings"
)

// form is how one aggregate function is taken apart. Its DuckDB texts are over the arguments x and y and the hidden columns of
// place.go; the FILTER of the call is added to each aggregate in them.
type form struct {
	parts  []part
	stored string // for people
	// finish computes the value from row s, as PostgreSQL text; {suffix} is the state of the part, {} the one without.
	finish string
	// oracle is the function rewritten where DuckDB alone is ambiguous, or empty.
	oracle string
	// typ and duck are the column's types in PostgreSQL and DuckDB when they are not those of the query.
	typ, duck string
	approx    bool
	ties      bool // ordered by place in the log
}

// part is one state of a form.
type part struct {
	suffix string // of the state's name after the column's; a part without has the column's name
	value  string
	merge  merge
	with   []string // suffixes of the parts that the merge looks at
	limit  int      // of a set
	place  bool
}

// formOf is the form of a canonical function, nil when it cannot be taken apart.
func formOf(function string) *form {
	switch function {
	case "count":
		return &form{stored: "count", parts: []part{{value: "count(x)", merge: mergeSum}}, finish: "{}"}
	case "count_if":
		// DuckDB gives NULL, not 0, when no condition was known.
		return &form{stored: "count + count", typ: "bigint", duck: "HUGEINT", finish: "CASE WHEN {__n} > 0 THEN {__if} END", parts: []part{
			{suffix: "__if", value: "count(*) FILTER (WHERE x)", merge: mergeSum},
			{suffix: "__n", value: "count(x)", merge: mergeSum},
		}}
	case "sum":
		return total("CASE WHEN {__n} > 0 THEN {__s} END")
	case "avg":
		return total("CASE WHEN {__n} > 0 THEN {__s} / {__n}::double precision END")
	case "min", "max":
		return &form{stored: function, parts: []part{{value: function + "(x)", merge: merge(function)}}, finish: "{}"}
	case "bool_and":
		return &form{stored: function, parts: []part{{value: "bool_and(x)", merge: mergeMin}}, finish: "{}"}
	case "bool_or":
		return &form{stored: function, parts: []part{{value: "bool_or(x)", merge: mergeMax}}, finish: "{}"}
	case "bit_and", "bit_or", "bit_xor":
		return &form{stored: function, parts: []part{{value: function + "(x)", merge: merge(function)}}, finish: "{}"}
	case "first", "last", "any_value":
		return inLog(function)
	case "arg_min", "arg_max", "arg_min_null", "arg_max_null":
		return byOrder(function)
	case "approx_count_distinct":
		return hashForm()
	case "histogram":
		return histogramForm(0) // with distinct_max: compiler.takeCall
	case "approx_quantile":
		return quantileForm(0) // with its fraction known: compiler.quantile
	default:
		return momentForm(function)
	}
}

// total is the form of sum and avg.
func total(finish string) *form {
	return &form{stored: "sum + count", finish: finish, parts: []part{
		{suffix: "__s", value: "coalesce(sum(x), 0)", merge: mergeSum},
		{suffix: "__n", value: "count(x)", merge: mergeSum},
	}}
}

// inLog is the form of first, last and any_value (the first one that is not NULL), by time and place in the log.
func inLog(function string) *form {
	arg, extreme, pick, where := "arg_min_null", "min", mergeFirst, ""
	if function == "last" {
		arg, extreme, pick = "arg_max_null", "max", mergeLast
	}
	if function == "any_value" {
		where = " FILTER (WHERE x IS NOT NULL)"
	}
	value := fmt.Sprintf("%s(x, row(%s, %s, x))%s", arg, timeAlias, placeAlias, where)
	return &form{stored: "value + place in the log", finish: "{}", ties: true, oracle: value, parts: []part{
		{value: value, merge: pick, with: []string{"__at"}},
		{
			suffix: "__at", merge: merge(extreme), place: true,
			value: fmt.Sprintf("%s({'%s': %[2]s, '%[3]s': %[3]s})%s", extreme, timeAlias, placeAlias, where),
		},
	}}
}

// byOrder is the form of arg_min(x, y) and its like: ties of y go by place in the log.
func byOrder(function string) *form {
	direction, keepsNull := strings.CutSuffix(function, "_null")
	extreme, pick := "min", mergeFirst
	if direction == "arg_max" {
		extreme, pick = "max", mergeLast
	}
	where := " FILTER (WHERE x IS NOT NULL AND y IS NOT NULL)"
	if keepsNull {
		where = " FILTER (WHERE y IS NOT NULL)"
	}
	winner := func(of string) string {
		return fmt.Sprintf("%s_null(%s, row(y, %s, x))%s", direction, of, placeAlias, where)
	}
	return &form{stored: "value + order + place in the log", finish: "{}", ties: true, oracle: winner("x"), parts: []part{
		{value: winner("x"), merge: pick, with: []string{"__o", "__at"}},
		{suffix: "__o", value: extreme + "(y)" + where, merge: merge(extreme)},
		{suffix: "__at", value: winner(placeAlias), merge: pick, with: []string{"__o", "__at"}, place: true},
	}}
}

// momentForm is the form of a function of means and spreads, or nil.
func momentForm(function string) *form {
	const (
		population = "CASE WHEN {__n} > 0 THEN %s / {__n}::double precision END"
		sample     = "CASE WHEN {__n} > 1 THEN %s / ({__n} - 1)::double precision END"
		some       = "CASE WHEN {__n} > 0 THEN %s END"
	)
	switch function {
	case "var_pop":
		return spread(fmt.Sprintf(population, "{__m2}"))
	case "var_samp":
		return spread(fmt.Sprintf(sample, "{__m2}"))
	case "stddev_pop":
		return spread("CASE WHEN {__n} > 0 THEN sqrt({__m2} / {__n}::double precision) END")
	case "stddev_samp":
		return spread("CASE WHEN {__n} > 1 THEN sqrt({__m2} / ({__n} - 1)::double precision) END")
	case "covar_pop":
		return pair(function, fmt.Sprintf(population, together))
	case "covar_samp":
		return pair(function, fmt.Sprintf(sample, together))
	case "corr":
		return pair(function, fmt.Sprintf(some, "CASE WHEN {__xx} > 0 AND {__yy} > 0 THEN "+together+" / sqrt({__xx}) / sqrt({__yy}) ELSE 'NaN' END"))
	case "regr_slope":
		return pair(function, fmt.Sprintf(some, "CASE WHEN {__xx} > 0 THEN "+together+" / {__xx} ELSE 'NaN' END"))
	case "regr_r2":
		return pair(function, "CASE WHEN {__n} > 0 AND {__xx} > 0 THEN CASE WHEN {__yy} > 0 THEN "+together+" / {__xx} * "+together+" / {__yy} ELSE 1 END END")
	default:
		return nil
	}
}

// spread is the form of a function of count, mean and the sum of squared distances from the mean.
func spread(finish string) *form {
	return &form{stored: "count + mean + squares", finish: finish, approx: true, parts: []part{
		{suffix: "__n", value: "count(x)", merge: mergeSum},
		{suffix: "__mean", value: mean("x", ""), merge: mergeMean, with: []string{"__n"}},
		{suffix: "__m2", value: "coalesce(var_pop(x) * count(x), 0)", merge: mergeProduct, with: []string{"__n", "__mean", "__mean"}},
	}}
}

// together is the sum of products of two variables. Rounding leaves something beside 0 where they have nothing in common, another
// something on each split: a correlation of less than a millionth counts as none.
const together = "(CASE WHEN abs({__c}) <= 1e-6 * sqrt({__xx}) * sqrt({__yy}) THEN 0 ELSE {__c} END)"

// pair is the form of a function of two variables. As in SQL the first argument is y, the second x: in the texts of the
// parts, which know arguments by their place, x is the first.
func pair(function, finish string) *form {
	const both = " FILTER (WHERE x IS NOT NULL AND y IS NOT NULL)"
	squares := func(argument string) string {
		return fmt.Sprintf("coalesce(var_pop(%s)%s * count(*)%[2]s, 0)", argument, both)
	}
	return &form{
		stored: "count + means + products", finish: finish, approx: true,
		oracle: fmt.Sprintf("CASE WHEN abs(corr(x, y)) <= 1e-6 THEN CAST(0 AS DOUBLE) ELSE %s(x, y) END", function),
		parts: []part{
			{suffix: "__n", value: "count(*)" + both, merge: mergeSum},
			{suffix: "__y", value: mean("x", both), merge: mergeMean, with: []string{"__n"}},
			{suffix: "__x", value: mean("y", both), merge: mergeMean, with: []string{"__n"}},
			{suffix: "__c", value: "coalesce(covar_pop(x, y) * count(*)" + both + ", 0)", merge: mergeProduct, with: []string{"__n", "__x", "__y"}},
			{suffix: "__xx", value: squares("y"), merge: mergeProduct, with: []string{"__n", "__x", "__x"}},
			{suffix: "__yy", value: squares("x"), merge: mergeProduct, with: []string{"__n", "__y", "__y"}},
		},
	}
}

// mean is the mean of an argument, exact when all its values are equal: then their spread is exactly 0 on every split.
func mean(argument, where string) string {
	return fmt.Sprintf("coalesce(CASE WHEN min(%s)%s = max(%[1]s)%[2]s THEN CAST(min(%[1]s)%[2]s AS DOUBLE) ELSE favg(%[1]s)%[2]s END, 0)", argument, where)
}
