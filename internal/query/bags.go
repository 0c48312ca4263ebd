package query

import (
	"fmt"
	"strings"
)

// bag is a call of an aggregate that is computed from the counts of its different values, the state of histogram.
type bag struct {
	function   string
	duck       string // type of the values
	limit      int
	distinct   bool
	descending bool
	fractions  []fraction // of quantiles
	list       bool       // the fractions are a list, and so is the result
}

// fraction is the constant second argument of a quantile.
type fraction struct {
	text  string // digits
	exact bool   // a decimal; DuckDB computes ranks with it in whole numbers
}

// bagFunction reports whether an aggregate is computed from the counts of its different values.
func bagFunction(function string) bool {
	switch function {
	case "median", "quantile_cont", "quantile_disc", "mode", "mad", "entropy":
		return true
	}
	return false
}

// form returns the form of the call. With more than limit different values the result is NULL.
func (b bag) form() *form {
	out := histogramForm(b.limit, b.duck)
	text := b.key("x")
	counts := "histogram(" + text + ") FILTER (WHERE x IS NOT NULL)"
	least := fmt.Sprintf("map_from_entries(list_slice(list_sort(map_entries(%s)), 1, %d))", counts, b.limit+1)
	out.parts[0].value = "coalesce(" + least + ", MAP {})"
	out.typ, out.duck = "", ""
	first := 1
	if b.function == "entropy" {
		first = 0
	}
	finite, once := "", ""
	if pg, _ := resultType(b.duck); b.continuous() && timeKey(pg) { // there is nothing between infinity and another time
		finite = " AND NOT {__counts} ?| ARRAY['infinity', '-infinity']"
		once = " AND count(*) FILTER (WHERE NOT isfinite(x)) = 0"
	}
	out.finish = fmt.Sprintf("CASE WHEN (SELECT count(*) FROM jsonb_object_keys({__counts})) BETWEEN %d AND %d%s THEN %s END",
		first, b.limit, finite, b.finish())
	out.oracle = fmt.Sprintf("CASE WHEN count(DISTINCT %s) BETWEEN %d AND %d%s THEN %s END", text, first, b.limit, once,
		b.once())
	out.listed = true
	out.approx = b.function == "entropy" || b.continuous() && !decimal(b.duck)
	return out
}

// key returns the text that names a value in the counts: PostgreSQL's input syntax, so that FINISH can cast it back.
func (b bag) key(x string) string {
	switch base, _ := splitType(b.duck); base {
	case "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_S", "TIMESTAMP_MS", "BLOB":
		return postgresText(x, b.duck)
	}
	return "CAST(" + oneZero(x, b.duck) + " AS VARCHAR)"
}

// continuous reports whether the result lies between two values.
func (b bag) continuous() bool {
	return b.function == "quantile_cont" || b.function == "mad" || b.function == "median" && b.interpolates()
}

// interpolates reports whether DuckDB computes values between two of this type; otherwise median is one of them.
func (b bag) interpolates() bool {
	pg, _ := resultType(b.duck)
	return numeric(pg) || timeKey(pg)
}

// problem returns why the call is refused, and the fix; "" if it is not.
func (b bag) problem() (cause, cure string) {
	pg, _ := resultType(b.duck)
	f, fixed := fixedType(b.duck)
	switch {
	case b.function == "entropy" && !strings.HasSuffix(b.duck, ")"):
		return "", ""
	case !comparable(b.duck, pg) || pg == "":
		return "values of " + b.duck + " have another order in PostgreSQL", "take a number, a text or a time from it"
	case b.continuous() && !b.interpolates():
		return b.function + " does not compute values between two of " + b.duck,
			"write quantile_disc(x, 0.5), or take a number from it, such as epoch(x)"
	case b.function == "mad" && !numeric(pg):
		return "mad of " + b.duck + " is not supported", "take a number from it, such as epoch(x)"
	case b.continuous() && (fixed && f.digits > 19 || decimal(b.duck) && f.digits > 18):
		return b.function + " of " + b.duck + " loses digits that depend on the engine", "cast it to BIGINT or DOUBLE"
	}
	return "", ""
}

// once returns the call in DuckDB. Of equally frequent values mode is the least one.
func (b bag) once() string {
	x := "x"
	if b.distinct {
		x = "DISTINCT x"
	}
	switch b.function {
	case "mode":
		const entry = "{n: -CAST(e.value AS BIGINT), k: e.key}"
		if b.distinct {
			return "min(x)"
		}
		return "struct_extract((list_sort(list_transform(map_entries(histogram(x) FILTER (WHERE x IS NOT NULL)), lambda e: " +
			entry + ")))[1], 'k')"
	case "median", "mad", "entropy":
		return b.function + "(" + x + ")"
	}
	sign := ""
	if b.descending {
		sign = "-"
	}
	var list []string
	for _, f := range b.fractions {
		text := sign + f.text
		if !f.exact {
			text = "CAST(" + text + " AS DOUBLE)"
		}
		list = append(list, text)
	}
	if b.list {
		return b.function + "(" + x + ", [" + strings.Join(list, ", ") + "])"
	}
	return b.function + "(" + x + ", " + list[0] + ")"
}

// entries returns the different values v and their counts c as PostgreSQL rows.
func (b bag) entries() string {
	pg, _ := resultType(b.duck)
	count := "b.c::bigint"
	if b.distinct {
		count = "1::bigint"
	}
	return fmt.Sprintf("SELECT b.k::%s AS v, %s AS c FROM jsonb_each_text({__counts}) AS b(k, c)", pg, count)
}

// finish computes the value in PostgreSQL.
func (b bag) finish() string {
	pg, _ := resultType(b.duck)
	switch b.function {
	case "mode":
		return "(SELECT b.v FROM (" + b.entries() + ") AS b ORDER BY b.c DESC, " + b.ordered("b.v") + " LIMIT 1)"
	case "entropy":
		return "(SELECT coalesce(sum(b.p * ln(1 / b.p)) / ln(2::double precision), 0) FROM (SELECT b.c::double precision / " +
			"sum(b.c) OVER ()::double precision AS p FROM (" + b.entries() + ") AS b) AS b)"
	case "median":
		if b.continuous() {
			return b.between(b.entries(), fraction{"0.5", true})
		}
		return b.ranked(b.entries(), fraction{"0.5", true})
	case "mad":
		distance := "abs(b.v - m.m)"
		if _, fixed := fixedType(b.duck); fixed && !decimal(b.duck) {
			distance = "abs(b.v::double precision - m.m)"
		}
		middle := b.between(b.entries(), fraction{"0.5", true})
		return b.between("SELECT "+distance+" AS v, b.c FROM ("+b.entries()+") AS b, (SELECT "+middle+" AS m) AS m",
			fraction{"0.5", true})
	}
	var values []string
	for _, f := range b.fractions {
		if b.continuous() {
			values = append(values, b.between(b.entries(), f))
		} else {
			values = append(values, b.ranked(b.entries(), f))
		}
	}
	if b.list {
		if b.continuous() {
			pg = b.betweenType()
		}
		return "ARRAY[" + strings.Join(values, ", ") + "]::" + pg + "[]"
	}
	return values[0]
}

// ordered returns a value for ORDER BY, in the direction of the call.
func (b bag) ordered(v string) string {
	if pg, _ := resultType(b.duck); textual(pg) {
		v += collateC
	}
	if b.descending {
		v += " DESC"
	}
	return v
}

// ranks adds to each entry the number of values up to it and of all.
func (b bag) ranks(entries string) string {
	return "(SELECT r.v, sum(r.c) OVER (ORDER BY " + b.ordered("r.v") + ") AS upto, sum(r.c) OVER () AS n FROM (" +
		entries +
		") AS r) AS u"
}

// ranked returns the value at a fraction, as DuckDB's quantile_disc computes its rank.
func (b bag) ranked(entries string, f fraction) string {
	rank := "u.n - floor(u.n - u.n * " + f.text + "::numeric)"
	if !f.exact {
		rank = "u.n::double precision - floor(u.n::double precision - u.n::double precision * '" + f.text +
			"'::double precision)"
	}
	return "(SELECT u.v FROM " + b.ranks(entries) + " WHERE u.upto >= greatest(1, " + rank + ") ORDER BY u.upto LIMIT 1)"
}

// between returns the value between the two around a fraction, with the arithmetic of DuckDB's quantile_cont.
func (b bag) between(entries string, f fraction) string {
	at := func(round string) string {
		return "(array_agg(u.v ORDER BY u.upto) FILTER (WHERE u.upto::double precision > " + round + "(u.r)))[1]"
	}
	places := "(SELECT u.v, u.upto, (u.n - 1)::double precision * '" + f.text + "'::double precision AS r FROM " +
		b.ranks(entries) + ") AS u"
	return "(SELECT " + b.interpolated() + " FROM (SELECT " + at("floor") + " AS lo, " + at("ceil") +
		" AS hi, max(u.r) - floor(max(u.r)) AS d FROM " + places + ") AS w)"
}

// betweenType returns the PostgreSQL type of a value between two others.
func (b bag) betweenType() string {
	pg, _ := resultType(b.duck)
	switch {
	case b.duck == "DATE":
		return "timestamp without time zone"
	case timeKey(pg) || b.duck == "FLOAT" || decimal(b.duck):
		return pg
	}
	return "double precision"
}

// interpolated returns the value at the fraction d of the way from lo to hi. DuckDB truncates the distance of
// decimals, and rounds times to microseconds.
func (b bag) interpolated() string {
	const weighted = "%[1]s * (1 - w.d) + %[2]s * w.d"
	typ := b.betweenType()
	f, _ := fixedType(b.duck)
	number := func(x string) string { return x + "::double precision" }
	switch {
	case strings.HasPrefix(typ, "timestamp"):
		micros := func(x string) string { return "(extract(epoch FROM " + x + ") * 1000000)::double precision" }
		sum := rounded("(" + fmt.Sprintf(weighted, micros("w.lo"), micros("w.hi")) + ")")
		return fmt.Sprintf("CASE WHEN w.d = 0 THEN w.lo::%[1]s WHEN isfinite(w.lo) AND isfinite(w.hi) THEN 'epoch'::%[1]s + "+
			"(%[2]s) * interval '1 microsecond' END", typ, sum)
	case decimal(b.duck):
		whole := func(x string) string { return "(" + x + " * " + power(f.scale) + ")::bigint" }
		lo, hi := whole("w.lo"), whole("w.hi")
		return fmt.Sprintf("(CASE WHEN w.d = 0 THEN w.lo ELSE (%[1]s + trunc((%[2]s - %[1]s)::double precision * w.d)::bigint)"+
			"::numeric / %[3]s END)::%[4]s", lo, hi, power(f.scale), typ)
	case typ == "real":
		wide := fmt.Sprintf(weighted, number("w.lo"), number("w.hi"))
		return fmt.Sprintf("(CASE WHEN w.d = 0 THEN w.lo WHEN abs(w.lo) < 1e38 AND abs(w.hi) < 1e38 AND abs(w.hi - w.lo) > 1e-30 "+
			"THEN w.lo::double precision + (w.hi - w.lo)::double precision * w.d ELSE %s END)::real", wide)
	}
	scaled := func(x string) string {
		return fmt.Sprintf("(CASE WHEN abs(%[1]s) < 1e-290 THEN 0 ELSE %[1]s END)", number(x))
	}
	return fmt.Sprintf("CASE WHEN w.d = 0 THEN %s ELSE %s END", number("w.lo"), fmt.Sprintf(weighted, scaled("w.lo"),
		scaled("w.hi")))
}
