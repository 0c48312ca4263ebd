package query

import (
	"fmt"
	"strings"
)

// The earliest day and moment that PostgreSQL holds, in DuckDB's spelling; both hold infinity. DuckDB's times end before
// PostgreSQL's do, its dates after.
const (
	firstDay    = "DATE '4714-11-24 (BC)'"
	lastDay     = "DATE '5874897-12-31'"
	firstMoment = "TIMESTAMP '4714-11-24 (BC) 00:00:00'"
)

// postgresText is a DuckDB expression that writes a value of a DuckDB type in PostgreSQL's input syntax.
func postgresText(value, duck string) string {
	text := "CAST(" + value + " AS VARCHAR)"
	if element, isList := strings.CutSuffix(duck, "[]"); isList {
		if pg, _ := resultType(duck); pg != "jsonb" {
			return arrayText(value, element)
		}
		return "CAST(to_json(" + value + ") AS VARCHAR)"
	}
	switch base, _ := splitType(duck); base {
	case "VARCHAR":
		return value
	case "BLOB":
		return `'\x' || hex(` + value + ")"
	case "DATE":
		return inRange(value, firstDay, lastDay, eraText(text))
	case "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS":
		return inRange(value, firstMoment, "", eraText(text))
	case "TIMESTAMP WITH TIME ZONE":
		return inRange(value, firstMoment+" AT TIME ZONE 'UTC'", "", eraText(text))
	case "STRUCT", "MAP":
		return "CAST(to_json(" + value + ") AS VARCHAR)"
	default:
		return text
	}
}

// eraText turns DuckDB's "0044-03-15 (BC) 10:00:00+00" into "0044-03-15 10:00:00+00 BC".
func eraText(text string) string {
	return fmt.Sprintf("CASE WHEN contains(%s, '(BC)') THEN replace(%s, ' (BC)', '') || ' BC' ELSE %s END", text, text, text)
}

// inRange raises an error for a finite day or moment that PostgreSQL cannot hold.
func inRange(value, first, last, text string) string {
	outside := fmt.Sprintf("%s < %s", value, first)
	if last != "" {
		outside += fmt.Sprintf(" OR %s > %s", value, last)
	}
	return fmt.Sprintf("CASE WHEN isfinite(%s) AND (%s) THEN error('out_of_range: PostgreSQL cannot hold the time ' || CAST(%s AS VARCHAR)) ELSE %s END",
		value, outside, value, text)
}

// arrayText writes a list of scalars as an array literal; each element is quoted.
func arrayText(value, element string) string {
	quoted := fmt.Sprintf(`'"' || replace(replace(%s, '\', '\\'), '"', '\"') || '"'`, postgresText("e", element))
	return fmt.Sprintf(`CASE WHEN %s IS NOT NULL THEN '{' || array_to_string(list_transform(%s, lambda e: CASE WHEN e IS NULL THEN 'NULL' ELSE %s END), ',') || '}' END`,
		value, value, quoted)
}
