package query

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// The kinds of value that the random queries work with.
type kind string

const (
	truth  kind = "truth"
	word   kind = "word"
	whole  kind = "whole"
	tame   kind = "tame" // numbers whose sums and squares lose no digits
	exactN kind = "exact"
	double kind = "double"
	moment kind = "moment"
	blob   kind = "blob"
)

// scalars are row-local expressions of a kind, the same text in both databases.
func scalars(k kind) []string {
	switch k {
	case truth:
		return []string{"ok", "small > 10", "duration_ms IS NULL", "url = '/a'", "NOT ok", "d > 0", "small BETWEEN 0 AND 400 OR ok", "user_id IN ('Z', 'z', '42')", "ok AND price < 500"}
	case word:
		return []string{"url", "user_id", "coalesce(user_id, 'none')", "url || '!'", "left(url, 2)", "CASE WHEN ok THEN url ELSE 'x' END", "md5(url)", "nullif(url, '/a')", "CAST(small AS TEXT)"}
	case whole:
		return []string{"small", `"we ird"`, "duration_ms", "length(url)", "small % 7", "abs(small)", `coalesce("we ird", 0)`, "CASE WHEN ok THEN small ELSE -1 END", "_partition", "_offset", "duration_ms % 10"}
	case tame:
		return []string{"small % 100", "length(url)", `CAST("we ird" % 1000 AS float8)`, "CASE WHEN abs(d) < 1e4 THEN d END", "CAST(small % 50 AS float8) / 8", "CASE WHEN abs(price) < 1000 THEN price END"}
	case exactN:
		return []string{"price", "price * 2", "CASE WHEN ok THEN price END"}
	case double:
		return []string{"d", "f", "CASE WHEN small > 0 THEN d END"}
	case moment:
		return []string{"ts", "date_trunc('hour', ts)", "date_trunc('month', local)", "day", "local", "_timestamp", "clock"}
	default:
		return []string{"id", "raw", "_key"}
	}
}

var everyKind = [...]kind{truth, word, whole, exactN, double, moment, blob}

// aggregateText is one aggregate in both databases.
type aggregateText struct{ duck, postgres string }

// inOrderPostgres takes the first value by an order.
func inOrderPostgres(x, order, where string) string {
	return fmt.Sprintf("(array_agg(%s ORDER BY %s) FILTER (WHERE %s))[1]", x, order, where)
}

// randomAggregate is one aggregate call with its twin in plain PostgreSQL, both with the filter.
func randomAggregate(r *rand.Rand, filter string) aggregateText {
	value := func(kinds ...kind) string { return pick(r, scalars(pick(r, kinds...))...) }
	where, and, only := "", "true", ""
	if filter != "" {
		where, and, only = " FILTER (WHERE "+filter+")", "("+filter+")", "("+filter+") AND "
	}
	same := func(text string) aggregateText { return aggregateText{text + where, text + where} }
	descending := func(columns string) string { return strings.ReplaceAll(columns, ",", " DESC,") + " DESC" }
	const place = "_topic, _partition, _offset"
	const inLog = "coalesce(_timestamp, '-infinity'), " + place
	switch f := pick(r, "count(*)", "count", "count_if", "bool", "sum", "sum double", "avg", "least", "greatest", "bits", "first", "last", "any_value", "arg_min", "arg_max", "arg_max_null", "spread", "pair", "distinct", "about", "quantile", "histogram", "median", "few", "list"); f {
	case "count(*)":
		return same("count(*)")
	case "count":
		return same("count(" + value(everyKind[:]...) + ")")
	case "count_if":
		x := value(truth)
		return aggregateText{"count_if(" + x + ")" + where, fmt.Sprintf("CASE WHEN count(%s)%s > 0 THEN count(*) FILTER (WHERE %s(%[1]s)) END", x, where, only)}
	case "bool":
		return same(pick(r, "bool_and(", "bool_or(") + value(truth) + ")")
	case "sum":
		return same("sum(" + value(whole, exactN) + ")")
	case "sum double": // with NaN and the infinities
		return same(pick(r, "sum(", "avg(") + "CASE WHEN abs(" + pick(r, "d) < 1e4 THEN d", "d) < 1e4 OR abs(d) > 1e300 THEN d", "f) < 1e4 OR abs(f) > 1e38 THEN CAST(f AS float8)") + " END)")
	case "avg":
		return same("avg(" + value(tame) + ")")
	case "least", "greatest":
		x := value(everyKind[:]...)
		if f == "least" {
			return aggregateText{"min(" + x + ")" + where, inOrderPostgres(x, x, only+"("+x+") IS NOT NULL")}
		}
		return aggregateText{"max(" + x + ")" + where, inOrderPostgres(x, "("+x+") DESC", only+"("+x+") IS NOT NULL")}
	case "bits":
		return same(pick(r, "bit_and(", "bit_or(", "bit_xor(") + pick(r, "small", `"we ird"`, "duration_ms") + ")")
	case "first":
		x := value(everyKind[:]...)
		return aggregateText{"first(" + x + ")" + where, inOrderPostgres(x, inLog, and)}
	case "last":
		x := value(everyKind[:]...)
		return aggregateText{"last(" + x + ")" + where, inOrderPostgres(x, "coalesce(_timestamp, '-infinity') DESC, "+descending(place), and)}
	case "any_value":
		x := value(everyKind[:]...)
		return aggregateText{"any_value(" + x + ")" + where, inOrderPostgres(x, inLog, only+"("+x+") IS NOT NULL")}
	case "arg_min", "arg_max", "arg_max_null":
		x, y := value(everyKind[:]...), value(everyKind[:]...)
		order, known := fmt.Sprintf("(%s), %s", y, place), only+"("+y+") IS NOT NULL"
		if f != "arg_min" {
			order = fmt.Sprintf("(%s) DESC, %s", y, descending(place))
		}
		if f != "arg_max_null" {
			known += " AND (" + x + ") IS NOT NULL"
		}
		return aggregateText{fmt.Sprintf("%s(%s, %s)%s", f, x, y, where), inOrderPostgres(x, order, known)}
	case "distinct":
		x := value(everyKind[:]...)
		return aggregateText{"count(DISTINCT " + x + ")" + where, fmt.Sprintf("CASE WHEN count(DISTINCT %s)%s <= 5 THEN count(DISTINCT %[1]s)%[2]s END", x, where)}
	case "histogram":
		x := value(word, whole)
		return aggregateText{"histogram(" + x + ")" + where, "counted(array_agg((" + x + ")::text)" + where + ")"}
	case "median":
		x := value(whole)
		return aggregateText{"median(" + x + ")" + where, fmt.Sprintf("CASE WHEN count(DISTINCT %s)%s <= 5 THEN percentile_cont(0.5) WITHIN GROUP (ORDER BY %[1]s)%[2]s END", x, where)}
	case "few":
		x := value(truth, word, whole, exactN, moment)
		extreme, how := "min", ""
		if r.IntN(2) == 1 {
			extreme, how = "max", " DESC"
		}
		return aggregateText{fmt.Sprintf("%s(%s, 2)%s", extreme, x, where), fmt.Sprintf("(array_agg(%s ORDER BY %[1]s%s) FILTER (WHERE %s(%[1]s) IS NOT NULL))[1:2]", x, how, only)}
	case "list":
		x, y := value(word, whole, exactN, moment), value(word, whole, double, moment)
		how := pick(r, "", " DESC")
		order := fmt.Sprintf("%s%s NULLS LAST, %s", y, how, inLog)
		duck := fmt.Sprintf("list(%s ORDER BY %s%s)%s", x, y, how, where)
		if r.IntN(3) == 0 {
			duck, order = "list("+x+")"+where, inLog
		}
		return aggregateText{duck, fmt.Sprintf("CASE WHEN count(*)%s BETWEEN 1 AND 5 THEN array_agg(%s ORDER BY %s)%[1]s END", where, x, order)}
	case "about": // exact below a thousand
		x := value(word, whole, moment)
		return aggregateText{"approx_count_distinct(" + x + ")" + where, "count(DISTINCT " + x + ")" + where}
	case "quantile": // of one value: its bucket is the value when it has two digits
		return aggregateText{"approx_quantile(CASE WHEN small % 10 = 3 THEN 42 END, 0.9)" + where, "max(CASE WHEN small % 10 = 3 THEN 42 END)" + where}
	case "spread":
		return same(pick(r, "var_pop(", "var_samp(", "stddev_pop(", "stddev_samp(", "variance(", "stddev(") + value(tame) + ")")
	default:
		name, y, x := pick(r, "covar_pop", "covar_samp", "corr", "regr_slope", "regr_r2"), value(tame), value(tame)
		call := fmt.Sprintf("%s(%s, %s)", name, y, x)
		// Where all values are equal, PostgreSQL divides by what its rounding left over.
		flat := func(v string) string {
			both := only + "(" + y + ") IS NOT NULL AND (" + x + ") IS NOT NULL"
			return fmt.Sprintf("min(%s) FILTER (WHERE %s) = max(%[1]s) FILTER (WHERE %[2]s)", v, both)
		}
		known := fmt.Sprintf("CASE WHEN regr_count(%s, %s)%s > 0 THEN coalesce(%s%[3]s, 'NaN') END", y, x, where, call) // NULL in PostgreSQL where DuckDB has NaN
		switch name {
		case "corr":
			return aggregateText{call + where, fmt.Sprintf("CASE WHEN %s OR %s THEN 'NaN' ELSE %s END", flat(x), flat(y), known)}
		case "regr_slope":
			return aggregateText{call + where, fmt.Sprintf("CASE WHEN %s THEN 'NaN' ELSE %s END", flat(x), known)}
		case "regr_r2":
			return aggregateText{call + where, fmt.Sprintf("CASE WHEN %s THEN NULL WHEN %s THEN 1 ELSE %s%s END", flat(x), flat(y), call, where)}
		}
		return same(call)
	}
}

// randomQuery is a query of the supported shapes and the same in plain PostgreSQL.
func randomQuery(r *rand.Rand) (duck, postgres string) {
	var keys, groups, items, twins []string
	how := r.IntN(4)
	for i := range r.IntN(4) {
		key := pick(r, scalars(pick(r, everyKind[:]...))...)
		items = append(items, fmt.Sprintf("%s AS k%d", key, i))
		keys = append(keys, fmt.Sprint(i+1))
		groups = append(groups, []string{fmt.Sprint(i + 1), fmt.Sprintf("k%d", i), key, ""}[how])
	}
	twins = append(twins, items...)
	several := r.IntN(4) == 0 // rows of a record
	if several && r.IntN(2) == 0 {
		items, twins = append(items, "n AS kn"), append(twins, "n AS kn")
		keys = append(keys, fmt.Sprint(len(items)))
		groups = append(groups, []string{fmt.Sprint(len(items)), "kn", "n", ""}[how])
	}
	for i := range 1 + r.IntN(5) {
		filter := ""
		if r.IntN(3) == 0 {
			filter = pick(r, scalars(truth)...)
		}
		a := randomAggregate(r, filter)
		if several && r.IntN(3) == 0 {
			of := pick(r, "sum(n)", "count(n)", "max(n)", "min(n)", "count(DISTINCT n)", "sum(n * small)", "bool_or(n > 0)")
			a = aggregateText{of, of}
		}
		items, twins = append(items, fmt.Sprintf("%s AS a%d", a.duck, i)), append(twins, fmt.Sprintf("%s AS a%d", a.postgres, i))
	}
	before, from := "", "source"
	inner := pick(r, scalars(truth)...)
	switch r.IntN(5) {
	case 0:
		from = "(SELECT * FROM source WHERE " + inner + ") AS s"
	case 1:
		before, from = "WITH c AS (SELECT * FROM source) ", "c"
	case 2:
		before, from = "WITH c AS (SELECT * FROM source WHERE "+inner+"), e AS (SELECT * FROM c) ", "(SELECT * FROM e) AS s"
	}
	where, twin := "", from
	if r.IntN(3) == 0 {
		where = " WHERE " + pick(r, scalars(truth)...)
	}
	if several {
		twin = "(SELECT * FROM " + from + ", unnest(ARRAY[1, small % 3, NULL, 1]) AS o (n)) AS u"
		from = "(SELECT *, unnest([1, small % 3, NULL, 1]) AS n FROM " + from + ") AS u"
	}
	duck = before + "SELECT " + strings.Join(items, ", ") + " FROM " + from + where
	postgres = before + "SELECT " + strings.Join(twins, ", ") + " FROM " + twin + where
	if len(keys) > 0 {
		postgres += " GROUP BY " + strings.Join(keys, ", ")
		duck += " GROUP BY " + map[bool]string{true: "ALL", false: strings.Join(groups, ", ")}[how == 3]
	}
	return duck, postgres
}
