package query

import (
	"fmt"
	"strings"
)

// The earliest date and time that PostgreSQL can hold, in DuckDB's spelling. Both systems have infinity. DuckDB's times
// end before PostgreSQL's, its dates after.
const (
	firstDay    = "DATE '4714-11-24 (BC)'"
	lastDay     = "DATE '5874897-12-31'"
	firstMoment = "TIMESTAMP '4714-11-24 (BC) 00:00:00'"
)

// postgresText returns a DuckDB expression that writes a value of a DuckDB type in PostgreSQL's input syntax.
func postgresText(value, duck string) string {
	if list := listType(duck); list != duck {
		value, duck = "CAST("+value+" AS "+list+")", list
	}
	text := "CAST(" + value + " AS VARCHAR)"
	if element, isList := strings.CutSuffix(duck, "[]"); isList {
		if pg, _ := resultType(duck); pg != "jsonb" {
			return arrayText(value, element)
		}
		return jsonText(value, duck)
	}
	switch base, _ := splitType(duck); base {
	case "VARCHAR":
		return value
	case "BLOB":
		return `'\x' || hex(` + value + ")"
	case "FLOAT", "DOUBLE":
		// zeros lose their sign: they are equal, and which of them a group shows would depend on the split
		return fmt.Sprintf("CASE WHEN %s = 0 THEN '0' ELSE %s END", value, text)
	case "DATE":
		return inRange(value, firstDay, lastDay, eraText(text))
	case "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS":
		return inRange(value, firstMoment, "", eraText(text))
	case "TIMESTAMP WITH TIME ZONE":
		return inRange(value, firstMoment+" AT TIME ZONE 'UTC'", "", eraText(text))
	case "STRUCT", "MAP":
		return jsonText(value, duck)
	default:
		return text
	}
}

// eraText turns DuckDB's "0044-03-15 (BC) 10:00:00+00" into "0044-03-15 10:00:00+00 BC".
func eraText(text string) string {
	return fmt.Sprintf("CASE WHEN contains(%s, '(BC)') THEN replace(%s, ' (BC)', '') || ' BC' ELSE %s END", text, text,
		text)
}

// inRange raises an error for a finite date or time that PostgreSQL cannot hold.
func inRange(value, first, last, text string) string {
	outside := fmt.Sprintf("%s < %s", value, first)
	if last != "" {
		outside += fmt.Sprintf(" OR %s > %s", value, last)
	}
	return fmt.Sprintf("CASE WHEN isfinite(%s) AND (%s) THEN error('out_of_range: PostgreSQL cannot hold the time ' || "+
		"CAST(%s AS VARCHAR)) ELSE %s END",
		value, outside, value, text)
}

// arrayText writes a list of scalars as an array literal with quoted elements.
func arrayText(value, element string) string {
	quoted := fmt.Sprintf(`'"' || replace(replace(%s, '\', '\\'), '"', '\"') || '"'`, postgresText("e", element))
	return fmt.Sprintf(`CASE WHEN %s IS NOT NULL THEN '{' || array_to_string(list_transform(%s, lambda e: CASE WHEN e IS NULL THEN 'NULL' ELSE %s END), ',') || '}' END`,
		value, value, quoted)
}

// jsonText writes a nested value as JSON, which has no NaN and no Infinity.
func jsonText(value, duck string) string {
	text := "CAST(to_json(" + value + ") AS VARCHAR)"
	if !doubles(duck) {
		return text
	}
	const strings, words = `'"(\\.|[^"\\])*"'`, "'NaN|nan|[Ii]nf'" // without strings, only JSON's own words are left
	return fmt.Sprintf("CASE WHEN regexp_matches(regexp_replace(%[1]s, %[2]s, '', 'g'), %[3]s) "+
		"THEN error('out_of_range: JSON has no NaN or Infinity: ' || %[1]s) ELSE %[1]s END", text, strings, words)
}
