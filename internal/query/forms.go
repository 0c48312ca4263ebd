package query

import (
	"fmt"
	"strings"
)

// form describes how one aggregate function is computed in parts. Its DuckDB texts use the arguments x and y and the
// hidden columns of place.go. The call's FILTER is added to each aggregate in them.
type form struct {
	parts  []part
	stored string // for people
	// finish computes the value from row s, as PostgreSQL text. {suffix} is the state with that suffix, {} the one
	// without.
	finish string
	// oracle replaces the function where DuckDB's result is ambiguous; otherwise empty.
	oracle string
	// typ and duck are the column's types in PostgreSQL and DuckDB if they differ from those of the query.
	typ, duck string
	approx    bool
	ties      bool // ordered by place in the log
	listed    bool // keeps values; FINISH has to be cast to the type of the column
}

// part is one state of a form.
type part struct {
	suffix string // of the state's name after the column's name; may be empty
	value  string
	merge  merge
	with   []string // suffixes of other parts that the merge reads
	limit  int      // of a set
	order  string   // of a list of entries, in PostgreSQL
	place  bool
}

// formOf returns the form of a canonical function, or nil if it cannot be computed in parts.
func formOf(function string) *form {
	switch function {
	case "count":
		return &form{stored: "count", parts: []part{{value: "count(x)", merge: mergeSum}}, finish: "{}"}
	case "count_if":
		// DuckDB returns NULL, not 0, if no condition was known.
		return &form{
			stored: "count + count", typ: "bigint", duck: "HUGEINT", finish: "CASE WHEN {__n} > 0 THEN {__if} END",
			parts: []part{
				{suffix: "__if", value: "count(*) FILTER (WHERE x)", merge: mergeSum},
				{suffix: "__n", value: "count(x)", merge: mergeSum},
			},
		}
	case "sum", "avg":
		return totalForm(function, "")
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
		return hashForm("")
	case "histogram":
		return histogramForm(0, "") // with distinct_max: compiler.typeForm
	case "median", "quantile_cont", "quantile_disc", "mode", "mad", "entropy", "list", "string_agg":
		return &form{} // once the types are known: compiler.collectForm
	case "skewness", "kurtosis", "kurtosis_pop":
		return &form{} // once the types are known: momentForm
	case "approx_quantile":
		return quantileForm(0) // once the fraction is known: compiler.quantile
	default:
		return momentForm(function, nil)
	}
}

// inLog returns the form of first, last and any_value (the first value that is not NULL), ordered by time and place in
// the log.
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

// byOrder returns the form of arg_min(x, y) and similar functions. Ties of y are resolved by place in the log.
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
