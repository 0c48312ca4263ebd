package query

import (
	"fmt"
	"strings"
)

// merge is how two stored states of a key become one.
type merge string

const (
	mergeSum merge = "sum"
	mergeMin merge = "min"
	mergeMax merge = "max"
)

// state is one stored partial state: the DuckDB expression that computes it from records, and how it merges.
type state struct {
	name  string
	value tree
	merge merge
	duck  string // DuckDB type, known after PARTIAL was described
	pg    string
}

// combine merges the stored state (row t) with the arriving one (row e), as PostgreSQL text.
func (s state) combine() string {
	t, e := "t."+ident(s.name), "e."+ident(s.name)
	if textual(s.pg) {
		t, e = t+collateC, e+collateC
	}
	switch s.merge {
	case mergeMin:
		return "least(" + t + ", " + e + ")"
	case mergeMax:
		return "greatest(" + t + ", " + e + ")"
	default:
		return t + " + " + e
	}
}

// aggregate merges many states of one key (rows e), as PostgreSQL text. Over no rows it gives what the query gives over no
// records.
func (s state) aggregate() string {
	e := "e." + ident(s.name)
	if s.merge == mergeSum {
		return fmt.Sprintf("coalesce(sum(%s), 0)::%s", e, s.pg)
	}
	switch {
	case textual(s.pg):
		return fmt.Sprintf("%s(%s%s)", s.merge, e, collateC)
	case s.pg == "boolean": // PostgreSQL has no min(boolean)
		if s.merge == mergeMin {
			return "bool_and(" + e + ")"
		}
		return "bool_or(" + e + ")"
	case s.pg == "uuid": // nor min(uuid) and min(bytea) before release 18; their text orders as they do
		return fmt.Sprintf("%s(%s::text%s)::uuid", s.merge, e, collateC)
	case s.pg == "bytea":
		return fmt.Sprintf("decode(%s(encode(%s, 'hex')%s), 'hex')", s.merge, e, collateC)
	default:
		return fmt.Sprintf("%s(%s)", s.merge, e)
	}
}

// mergeable says that an aggregate function can be taken apart.
func mergeable(name string) bool {
	switch name {
	case "count", "count_star", "sum", "avg", "mean", "min", "max":
		return true
	}
	return false
}

// aggregateCure says what to use in place of an aggregate that is not supported.
func aggregateCure(name string) string {
	switch name {
	case "count_if", "countif":
		return "write count(*) FILTER (WHERE …)"
	case "bool_and":
		return "write min(x): false counts as less than true"
	case "bool_or":
		return "write max(x): true counts as more than false"
	case "fsum", "kahan_sum", "sumkahan", "sum_no_overflow":
		return "use sum(x); cast x to DECIMAL for a total that is exact in any order"
	case "favg":
		return "use avg(x); cast x to DECIMAL for a mean that is exact in any order"
	case "var_pop", "var_samp", "variance", "stddev", "stddev_pop", "stddev_samp", "sem", "covar_pop", "covar_samp", "corr":
		return "select count(x), sum(x) and sum(x * x) and compute it in serve.columns"
	case "product", "geomean", "geometric_mean":
		return "select sum(ln(x)) and compute exp() in serve.columns"
	case "wavg", "weighted_avg":
		return "select sum(x * w) and sum(w) and divide in serve.columns"
	case "first", "first_value", "last", "last_value", "any_value", "arbitrary", "arg_min", "argmin", "min_by", "arg_max", "argmax", "max_by",
		"arg_min_null", "arg_max_null", "arg_min_nulls_last", "arg_max_nulls_last", "nth_value":
		return "use min(x) or max(x), or add the column to GROUP BY"
	case "approx_count_distinct":
		return "add the column to GROUP BY and count the rows of the view"
	case "median", "quantile", "quantile_cont", "quantile_disc", "approx_quantile", "reservoir_quantile", "mode", "mad", "histogram",
		"histogram_exact", "entropy", "approx_top_k":
		return "count per bucket: add a rounded value, such as floor(x / 10) * 10 AS bucket, to GROUP BY and select count(*); the view then holds the distribution"
	case "list", "array_agg", "string_agg", "group_concat", "listagg", "bitstring_agg":
		return "add the column to GROUP BY: one row a value"
	default:
		return "count, sum, avg, min and max can be merged, each with FILTER (WHERE …)"
	}
}

// shown is how people write a call of the function.
func shown(function string) string {
	if function == "count_star" {
		return "count(*)"
	}
	return function + "()"
}

// call is one aggregate of the select list: its function without the spellings that mean the same, and its states.
type call struct {
	function string // count, sum, avg, min, max
	node     tree
	sum      string // names of its states
	count    string
	value    string // min or max
}

// storedAs names the states, for people.
func (c call) storedAs() string {
	if c.function == "sum" || c.function == "avg" {
		return "sum + count"
	}
	return c.function
}

// canonical is the function's name without the spellings that mean the same.
func canonical(node tree) string {
	switch name := node.function(); name {
	case "count_star":
		return "count"
	case "mean":
		return "avg"
	default:
		return name
	}
}

// as copies an aggregate call with another function over the same argument and filter.
func as(node tree, function string) tree {
	c := node.clone()
	c["function_name"], c["alias"] = function, ""
	return c
}

// finish computes the aggregate's value from its states in row s, as PostgreSQL text.
func (c call) finish(sumType string) string {
	s, n := "s."+ident(c.sum), "s."+ident(c.count)
	switch c.function {
	case "count":
		return n
	case "sum":
		return fmt.Sprintf("CASE WHEN %s > 0 THEN %s END", n, s)
	case "avg":
		if !strings.HasPrefix(sumType, "double") {
			s += "::double precision"
		}
		return fmt.Sprintf("CASE WHEN %s > 0 THEN %s / %s::double precision END", n, s, n)
	default:
		return "s." + ident(c.value)
	}
}
