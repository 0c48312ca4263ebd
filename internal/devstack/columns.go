package devstack

import (
	"fmt"
	"strings"
)

// form is how a column's value is written into JSON.
type form int

const (
	asTyped form = iota // by its Arrow type
	asText              // a string
	asJSON              // a string that is JSON already
)

// column is one column of a table file: how to read it and how to write it.
type column struct {
	name string
	expr string // DuckDB SQL; one of the few types that encode knows
	form form
}

// parquetColumn reads a column so that nothing of its value is lost: integers and decimals with all digits, times in
// ISO 8601, bytes in PostgreSQL's hexadecimal form.
func parquetColumn(name, kind string) column {
	quoted := quoteName(name)
	cast := func(format string, f form) column { return column{name, fmt.Sprintf(format, quoted), f} }
	base, _, _ := strings.Cut(kind, "(")
	switch {
	case strings.HasSuffix(kind, "[]"), strings.HasSuffix(kind, "]"), base == "STRUCT", base == "MAP", base == "UNION", base == "VARIANT":
		return cast("to_json(%s)::VARCHAR", asJSON)
	}
	switch base {
	case "JSON":
		return cast("%s::VARCHAR", asJSON)
	case "BOOLEAN", "BIGINT", "DOUBLE", "FLOAT", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE":
		return cast("%s", asTyped)
	case "VARCHAR":
		return cast("%s", asText)
	case "TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER":
		return cast("%s::BIGINT", asTyped)
	case "UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM", "DECIMAL":
		return cast("%s::VARCHAR", asJSON)
	case "TIMESTAMP_S", "TIMESTAMP_MS":
		return cast("%s::TIMESTAMP", asTyped)
	case "TIMESTAMP_NS":
		return cast("replace(%s::VARCHAR, ' ', 'T')", asText)
	case "BLOB":
		return cast(`'\x' || lower(hex(%s))`, asText)
	}
	return cast("%s::VARCHAR", asText) // DATE, TIME, UUID, ENUM, INTERVAL, BIT, …
}

// The kinds of a CSV column, told from all of its values.
const (
	csvNumber  = "number"
	csvBoolean = "boolean"
	csvTime    = "time"
	csvText    = "text"
)

// csvKind is SQL that tells the kind of a column. A number is what JSON takes as one, so that it is written digit by
// digit and 007 stays text.
func csvKind(name string) string {
	c := quoteName(name)
	all := func(pattern string) string { return fmt.Sprintf("bool_and(regexp_full_match(%s, '%s'))", c, pattern) }
	return fmt.Sprintf("CASE WHEN count(%s) = 0 THEN '%s' WHEN %s THEN '%s' WHEN %s THEN '%s' WHEN %s THEN '%s' ELSE '%s' END", c, csvText,
		all(`-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`), csvNumber,
		all(`(?i)true|false`), csvBoolean,
		all(`[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?`), csvTime, csvText)
}

func csvColumn(name, kind string) column {
	quoted := quoteName(name)
	switch kind {
	case csvNumber:
		return column{name, quoted, asJSON}
	case csvBoolean:
		return column{name, "lower(" + quoted + ")", asJSON}
	case csvTime:
		return column{name, "replace(" + quoted + ", ' ', 'T')", asText}
	}
	return column{name, quoted, asText}
}

func quoteName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func quoteText(s string) string { return `'` + strings.ReplaceAll(s, `'`, `''`) + `'` }
