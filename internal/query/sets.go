package query

import (
	"fmt"
	"strings"
)

// hashes is the number of smallest hashes that approx_count_distinct keeps. Up to that number of different values the
// count is exact; beyond it the standard error is 1 / sqrt(hashes - 2), about 3 %.
const hashes = 1024

// distinctFunction reports whether an aggregate can be computed over different values.
func distinctFunction(function string) bool {
	switch function {
	case "count", "sum", "avg", "list", "string_agg":
		return true
	}
	return spread(function) || bagFunction(function)
}

// spread reports whether a function is a spread of one variable.
func spread(function string) bool {
	switch function {
	case "var_pop", "var_samp", "stddev_pop", "stddev_samp":
		return true
	}
	return false
}

// distinctForm returns the form of an aggregate of different values, at most limit. It stores the least limit + 1
// values, sorted; the extra one shows that there are more. The least values of a union are among the least of its
// parts, so parts can be cut. duck is the type of the values, descending the order of a list.
func distinctForm(function string, limit int, duck, separator string, descending bool) *form {
	out := &form{
		stored: fmt.Sprintf("up to %d values", limit),
		finish: fmt.Sprintf("CASE WHEN cardinality({__set}) <= %d THEN cardinality({__set})::bigint END", limit),
		oracle: fmt.Sprintf("CASE WHEN count(DISTINCT x) <= %d THEN count(DISTINCT x) END", limit),
		parts:  []part{{suffix: "__set", value: leastValues(different, limit+1), merge: mergeSet, limit: limit + 1}},
	}
	some := fmt.Sprintf("CASE WHEN cardinality({__set}) BETWEEN 1 AND %d THEN ", limit)
	few := fmt.Sprintf("CASE WHEN count(DISTINCT x) <= %d THEN ", limit)
	const values = " FROM unnest({__set}) AS u(v))"
	how := ""
	if descending {
		how = " DESC"
	}
	switch {
	case (function == "sum" || function == "avg") && doubles(duck):
		total := doubleTotal(function)
		sum := "(SELECT coalesce(sum(u.v::double precision * " + doubleDown() + "::double precision), 0)" + values
		out.finish = some + strings.NewReplacer("{__s}", sum, "{__n}", "cardinality({__set})").Replace(total.finish) + " END"
		out.oracle, out.approx = few+function+"(DISTINCT x) END", true
	case function == "sum":
		out.finish = some + "(SELECT sum(u.v)" + values + "::numeric END"
		out.oracle = few + "sum(DISTINCT x) END"
	case function == "avg":
		out.finish = some + "(SELECT sum(u.v)" + values + "::double precision / cardinality({__set}) END"
		out.oracle = few + "CAST(CAST(sum(DISTINCT x) AS VARCHAR) AS DOUBLE) / count(DISTINCT x) END"
	case spread(function):
		out.finish = some + "(SELECT " + function + "(u.v::text::numeric)::double precision" + values + " END"
		out.oracle, out.approx = few+function+"(DISTINCT x) END", true
	case function == "string_agg":
		pg, _ := resultType(duck)
		out.finish = fmt.Sprintf("%s(SELECT string_agg(u.v::text, %s ORDER BY %s%s)%s END", some, literal(separator),
			collated("u.v", pg), how, values)
		out.oracle = fmt.Sprintf("%sstring_agg(DISTINCT x, %s ORDER BY x%s) END", few, literal(separator), how)
	}
	return out
}

// collated returns a value of a PostgreSQL type as DuckDB compares it.
func collated(v, pg string) string {
	if textual(pg) {
		return v + collateC
	}
	return v
}

// distinctList returns the form of list(DISTINCT x). NULL is one of the values.
func distinctList(limit int, duck string, descending, nullsFirst bool) *form {
	out := distinctForm("count", limit, duck, "", false)
	out.listed = true
	out.parts = append(out.parts, part{suffix: "__null", value: "bool_or(x IS NULL)", merge: mergeMax})
	pg, _ := resultType(duck)
	how := listOrder{desc: descending, nullsFirst: nullsFirst}.how()
	all := "({__set} || CASE WHEN {__null} THEN ARRAY[NULL::" + pg + "] ELSE '{}' END)"
	out.finish = fmt.Sprintf("CASE WHEN cardinality({__set}) <= %d AND cardinality(%s) > 0 THEN ARRAY(SELECT u.v FROM "+
		"unnest(%[2]s) AS u(v) ORDER BY %[3]s%[4]s) END", limit, all, collated("u.v", pg), how)
	out.oracle = fmt.Sprintf("CASE WHEN count(DISTINCT x) <= %d THEN list(DISTINCT x ORDER BY x%s) END", limit, how)
	return out
}

// hashForm returns the form of approx_count_distinct(x) from the least hashes of its values (Bar-Yossef and others,
// "Counting distinct elements in a data stream", 2002). If u is the k-th least of hashes uniform in [0, 1), there are
// about (k - 1) / u values.
func hashForm(duck string) *form {
	const hash = "CAST(md5_number_lower(CAST(v AS VARCHAR)) >> 1 AS BIGINT)"
	values := fmt.Sprintf("list(DISTINCT %s) FILTER (WHERE x IS NOT NULL)", oneZero("x", duck))
	least := leastValues("list_distinct(list_transform("+values+", lambda v: "+hash+"))", hashes)
	estimate := func(cardinality, last, floor string) string {
		return fmt.Sprintf("CASE WHEN %[1]s < %[3]d THEN %[1]s ELSE CAST(floor(%[4]d * (CAST(9223372036854775808 AS %[5]s) "+
			"/ %[2]s)) AS bigint) END",
			cardinality, last, hashes, hashes-1, floor)
	}
	return &form{
		stored: fmt.Sprintf("up to %d hashes", hashes), approx: true, typ: "bigint", duck: "BIGINT",
		finish: estimate("cardinality({__set})", fmt.Sprintf("({__set})[%d]", hashes), "double precision"),
		oracle: estimate("len("+least+")", fmt.Sprintf("(%s)[%d]", least, hashes), "DOUBLE"),
		parts:  []part{{suffix: "__set", value: least, merge: mergeSet, limit: hashes}},
	}
}

// oneZero returns a value of a DuckDB type with the same text for both zeros of a double, which are equal.
func oneZero(x, duck string) string {
	switch {
	case duck == "DOUBLE" || duck == "FLOAT":
		return fmt.Sprintf("CASE WHEN %s = 0 THEN CAST(0 AS %s) ELSE %[1]s END", x, duck)
	case strings.HasSuffix(duck, "[]") && strings.Trim(duck, "[]") != duck && doubles(duck):
		return fmt.Sprintf("list_transform(%s, lambda e: %s)", x, oneZero("e", element(duck)))
	}
	return x
}

// doubles reports whether values of a DuckDB type contain doubles.
func doubles(duck string) bool {
	return strings.Contains(duck, "DOUBLE") || strings.Contains(duck, "FLOAT")
}

// different is the list of the different values of x.
const different = "list(DISTINCT x) FILTER (WHERE x IS NOT NULL)"

// leastValues returns the least values of a list, sorted.
func leastValues(list string, limit int) string {
	return fmt.Sprintf("coalesce(list_slice(list_sort(%s), 1, %d), [])", list, limit)
}

// quantileForm returns the form of approx_quantile(x, q). It stores the number of values per bucket, at most 2 % wide,
// and the least and the greatest value, which bound the result.
func quantileForm(q float64) *form {
	bucket := bucketOf("CAST(x AS DOUBLE)")
	// The rank as DuckDB's quantile_disc computes it.
	rank := fmt.Sprintf("greatest(1, u.n - floor(u.n::double precision - u.n::double precision * %v::double precision))",
		q)
	within := func(value, least, most string) string {
		return fmt.Sprintf("CASE WHEN %[1]s >= %[4]s THEN %[3]s WHEN %[1]s <= -%[4]s THEN %[2]s ELSE least(greatest(%[1]s, "+
			"%[2]s), %[3]s) END",
			value, least, most, lastBucket)
	}
	disc := fmt.Sprintf("quantile_disc(CAST(%s AS DOUBLE), CAST(%v AS DOUBLE)) FILTER (WHERE x IS NOT NULL)", bucket, q)
	return &form{
		stored: "counts by bucket", approx: true, typ: "double precision", duck: "DOUBLE",
		finish: "(SELECT " + within("u.v", "{__least}::double precision", "{__most}::double precision") +
			" FROM (SELECT b.key::double precision AS v, sum(b.value::bigint) OVER (ORDER BY b.key::double precision) AS " +
			"upto, sum(b.value::bigint) OVER () AS n " +
			"FROM jsonb_each_text({__buckets}) AS b) AS u WHERE u.upto >= " + rank + " ORDER BY u.v LIMIT 1)",
		oracle: within(disc, "CAST(min(x) AS DOUBLE)", "CAST(max(x) AS DOUBLE)"),
		parts: []part{
			{
				suffix: "__buckets", value: "coalesce(histogram(" + bucket + ") FILTER (WHERE x IS NOT NULL), MAP {})",
				merge: mergeCounts,
			},
			{suffix: "__least", value: "min(x)", merge: mergeMin},
			{suffix: "__most", value: "max(x)", merge: mergeMax},
		},
	}
}

// lastBucket holds all larger values.
const lastBucket = "1e300"

// bucketOf names the bucket of a number by its middle: the number with three digits, rounded to a multiple of 2, 5 or
// 10 in the third. It uses decimal digits because they are the same on every machine; logarithms are not. Numbers
// beyond 1e300, infinities and NaN count as 1e300. The expression has no CASE, so that DuckDB computes repeated parts
// once (5 times as fast).
func bucketOf(x string) string {
	text := "format('{:.2e}', greatest(least(" + x + ", " + lastBucket + "), -" + lastBucket + "))"
	digits := "CAST(replace(split_part(" + text + ", 'e', 1), '.', '') AS INTEGER)"
	step := fmt.Sprintf("(2 + 3 * CAST(abs(%[1]s) >= 200 AS INTEGER) + 5 * CAST(abs(%[1]s) >= 500 AS INTEGER))", digits)
	return fmt.Sprintf("concat(CAST(round(%s / %s) AS INTEGER) * %[2]s, 'e', CAST(split_part(%[3]s, 'e', 2) AS "+
		"INTEGER) - 2)", digits, step, text)
}

// combineSet returns the least values of two sorted sets.
func (s *state) combineSet() string {
	return s.leastOf(fmt.Sprintf("t.%s || e.%[1]s", ident(s.name)))
}

// aggregateSet does the same over many rows. Arrays of different lengths cannot be aggregated, but their texts can.
func (s *state) aggregateSet() string {
	text := "e." + ident(s.name) + "::text"
	return s.leastOf(fmt.Sprintf("('{' || string_agg(nullif(substr(%s, 2, length(%[1]s) - 2), ''), ',') || '}')::%s", text,
		s.pg))
}

func (s *state) leastOf(array string) string {
	value := "u.v"
	if textual(s.pg) {
		value += collateC
	}
	return fmt.Sprintf("ARRAY(SELECT DISTINCT %s FROM unnest(%s) AS u(v) ORDER BY 1 LIMIT %d)", value, array, s.limit)
}

// combineCounts adds two tables of counts by name.
func (s *state) combineCounts() string {
	return s.countsOf(fmt.Sprintf("(SELECT * FROM jsonb_each_text(t.%s) UNION ALL SELECT * FROM "+
		"jsonb_each_text(e.%[1]s)) AS b", ident(s.name)))
}

// aggregateCounts does the same over many rows.
func (s *state) aggregateCounts() string {
	return s.countsOf(fmt.Sprintf("jsonb_array_elements(jsonb_agg(e.%s)) AS o(m), jsonb_each_text(o.m) AS b",
		ident(s.name)))
}

func (s *state) countsOf(entries string) string {
	cut := ""
	if s.limit > 0 {
		cut = fmt.Sprintf(" ORDER BY b.key%s LIMIT %d", collateC, s.limit)
	}
	return "(SELECT coalesce(jsonb_object_agg(u.k, u.n), '{}') FROM (SELECT b.key AS k, sum(b.value::bigint) AS n FROM " +
		entries + " GROUP BY b.key" + cut + ") AS u)"
}

// element returns the type of a list's items, or "".
func element(list string) string {
	item, isList := strings.CutSuffix(list, "[]")
	if !isList {
		return ""
	}
	return item
}
