package verify

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// canon converts the values of one PostgreSQL type to the same form in both engines. Each function takes an SQL
// expression and returns one.
type canon struct {
	postgres func(x string) string // to text
	duck     func(x string) string // to the value that load makes of that text
	load     string                // DuckDB type in which values are compared
	show     func(x string) string // from load's type to text for people
}

const (
	text   = "VARCHAR"
	double = "DOUBLE"
)

// canonOf returns the canon of a type named as format_type prints it.
func canonOf(column, typ string) (canon, error) {
	if element, isArray := strings.CutSuffix(typ, "[]"); isArray {
		inner, err := canonOf(column, element)
		if err != nil || inner.load != text {
			return canon{}, cannotCompare(column, typ)
		}
		return arrayCanon(inner), nil
	}
	base, _, _ := strings.Cut(typ, "(")
	switch base {
	case "boolean", "smallint", "integer", "bigint", "text", "character varying", "uuid":
		return canon{pattern("%s::text"), pattern("CAST(%s AS VARCHAR)"), text, itself}, nil
	case "numeric":
		return canon{
			pattern("trim_scale(%s)::text"), pattern(
				"CASE WHEN contains(CAST(%[1]s AS VARCHAR), '.') THEN rtrim(rtrim(CAST(%[1]s AS VARCHAR), '0'), '.') ELSE " +
					"CAST(%[1]s AS VARCHAR) END"),
			text, itself,
		}, nil
	case "real", "double precision":
		return canon{pattern("(%s)::float8::text"), pattern("CAST(%s AS DOUBLE)"), double, pattern("CAST(%s AS VARCHAR)")},
			nil
	case "jsonb":
		return jsonCanon(), nil
	case "interval":
		return intervalCanon(), nil
	case "bytea":
		return canon{pattern("encode(%s, 'hex')"), pattern("lower(hex(%s))"), text, pattern(`'\x' || %s`)}, nil
	}
	return timeCanon(column, base)
}

// timeCanon compares times as days or microseconds since 1970, and infinities as words.
func timeCanon(column, base string) (canon, error) {
	switch base {
	case "date":
		return canon{
			pattern("CASE WHEN isfinite(%[1]s) THEN (%[1]s - DATE '1970-01-01')::text ELSE (%[1]s)::text END"),
			pattern("CASE WHEN isfinite(%[1]s) THEN CAST(%[1]s - DATE '1970-01-01' AS VARCHAR) ELSE CAST(%[1]s AS VARCHAR) END"),
			text,
			pattern("coalesce(CAST(DATE '1970-01-01' + TRY_CAST(%[1]s AS INTEGER) AS VARCHAR), %[1]s)"),
		}, nil
	case "timestamp without time zone":
		return canon{
			pattern("CASE WHEN isfinite(%[1]s) THEN (extract(epoch FROM %[1]s) * 1000000)::bigint::text ELSE (%[1]s)::text END"),
			pattern("CASE WHEN isfinite(%[1]s) THEN CAST(epoch_us(CAST(%[1]s AS TIMESTAMP)) AS VARCHAR) ELSE CAST(%[1]s AS " +
				"VARCHAR) END"), text,
			pattern("coalesce(CAST(make_timestamp(TRY_CAST(%[1]s AS BIGINT)) AS VARCHAR), %[1]s)"),
		}, nil
	case "timestamp with time zone":
		return canon{
			pattern("CASE WHEN isfinite(%[1]s) THEN (extract(epoch FROM %[1]s) * 1000000)::bigint::text ELSE (%[1]s)::text END"),
			pattern("CASE WHEN isfinite(%[1]s) THEN CAST(epoch_us(%[1]s) AS VARCHAR) ELSE CAST(%[1]s AS VARCHAR) END"), text,
			pattern("coalesce(CAST(make_timestamp(TRY_CAST(%[1]s AS BIGINT)) AS VARCHAR) || '+00', %[1]s)"),
		}, nil
	case "time without time zone":
		return canon{
			pattern("(extract(epoch FROM %s) * 1000000)::bigint::text"),
			pattern("CAST(epoch_us(%s) AS VARCHAR)"), text,
			pattern("CAST(TIME '00:00:00' + to_microseconds(CAST(%s AS BIGINT)) AS VARCHAR)"),
		}, nil
	}
	return canon{}, cannotCompare(column, base)
}

// jsonCanon compares the sorted paths and values of a JSON text, because engines order names, escape texts and write
// numbers differently. Numbers are compared as doubles.
func jsonCanon() canon {
	return canon{
		postgres: pattern("(%s)::text"), load: text, show: itself,
		duck: func(x string) string { return jsonPaths("to_json(" + x + ")") },
	}
}

func jsonPaths(x string) string {
	const value = "CASE WHEN u.type IN ('OBJECT', 'ARRAY', 'NULL') THEN u.type " +
		"WHEN u.type = 'BOOLEAN' THEN CAST(u.atom AS VARCHAR) WHEN u.type = 'VARCHAR' THEN concat('\"', u.atom->>'$') " +
		"ELSE CAST(CAST(u.atom AS DOUBLE) AS VARCHAR) END"
	return "(SELECT string_agg(concat(u.fullkey, ' ', " + value + "), chr(10) ORDER BY u.fullkey) " +
		"FROM json_tree(CAST(" + x + " AS JSON)) AS u)"
}

// intervalCanon compares months, days and microseconds.
func intervalCanon() canon {
	return canon{
		postgres: pattern("(extract(year FROM %[1]s) * 12 + extract(month FROM %[1]s))::int || ' ' || " +
			"extract(day FROM %[1]s)::int || ' ' || (extract(hour FROM %[1]s) * 3600000000 + " +
			"extract(minute FROM %[1]s) * 60000000 + extract(microseconds FROM %[1]s))::bigint"),
		duck: pattern("CAST(datepart('year', %[1]s) * 12 + datepart('month', %[1]s) AS VARCHAR) || ' ' || " +
			"CAST(datepart('day', %[1]s) AS VARCHAR) || ' ' || CAST(datepart('hour', %[1]s) * 3600000000 + " +
			"datepart('minute', %[1]s) * 60000000 + datepart('microsecond', %[1]s) AS VARCHAR)"),
		load: text, show: itself,
	}
}

// arrayCanon compares a JSON list of the elements' texts.
func arrayCanon(element canon) canon {
	return canon{
		postgres: func(x string) string {
			return fmt.Sprintf("CASE WHEN %[1]s IS NOT NULL THEN array_to_json(ARRAY(SELECT %[2]s FROM unnest(%[1]s) WITH "+
				"ORDINALITY AS u(x, n) ORDER BY n))::text END",
				x, element.postgres("u.x"))
		},
		duck: func(x string) string {
			return fmt.Sprintf("CASE WHEN %[1]s IS NOT NULL THEN CAST(to_json(list_transform(%[1]s, lambda x: %[2]s)) AS "+
				"VARCHAR) END", x, element.duck("x"))
		},
		load: text,
		show: itself,
	}
}

// countsCanon compares an object of counts: its names in hexadecimal, ordered by their bytes, each with its count.
// Engines escape and order names in JSON differently.
func countsCanon() canon {
	return canon{
		postgres: pattern("(SELECT string_agg(encode(convert_to(u.key, 'UTF8'), 'hex') || '=' || u.value, ',' ORDER BY " +
			"u.key COLLATE \"C\") FROM jsonb_each_text(%s) AS u)"),
		duck: pattern("array_to_string(list_transform(list_sort(map_entries(%s)), lambda u: lower(hex(encode(u.key))) || " +
			"'=' || CAST(u.value AS VARCHAR)), ',')"),
		load: text, show: itself,
	}
}

// pattern returns a function that inserts its argument for every %s or %[1]s.
func pattern(sql string) func(string) string {
	sql = strings.ReplaceAll(sql, "%[1]s", "%s")
	return func(x string) string { return strings.ReplaceAll(sql, "%s", x) }
}

func itself(x string) string { return x }

func cannotCompare(column, typ string) error {
	return &job.Refusal{
		Code:  job.ExitUsage,
		Cause: fmt.Sprintf("column %q has type %s, which verify cannot compare", column, typ),
		Next:  "cast it to text in query",
	}
}
