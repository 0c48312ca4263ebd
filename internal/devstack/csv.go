package devstack

import "fmt"

// The kinds of a CSV column, determined from all its values.
const (
	csvNumber  = "number"
	csvBoolean = "boolean"
	csvTime    = "time"
	csvText    = "text"
)

// csvKind returns SQL for the kind of a column. A number is a valid JSON number, so that it is written digit by digit
// and 007 stays text, or one of the three words that a double precision column accepts.
func csvKind(name string) string {
	c := quoteName(name)
	all := func(pattern string) string { return fmt.Sprintf("bool_and(regexp_full_match(%s, '%s'))", c, pattern) }
	const (
		date  = `[0-9]{4}-[0-9]{2}-[0-9]{2}`
		clock = `[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?`
		zone  = `Z|[+-][0-9]{2}(:?[0-9]{2})?`
	)
	return fmt.Sprintf("CASE WHEN count(%s) = 0 THEN '%s' WHEN %s THEN '%s' WHEN %s THEN '%s' WHEN %s THEN '%s' "+
		"ELSE '%s' END", c, csvText,
		all(`-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|NaN|-?Infinity`), csvNumber,
		all(`(?i)true|false`), csvBoolean,
		all(date+`[ T]`+clock+`(`+zone+`)?`), csvTime, csvText)
}

func csvColumn(name, kind string) column {
	quoted := quoteName(name)
	switch kind {
	case csvNumber:
		const words = `('NaN', 'Infinity', '-Infinity')`
		return column{name, fmt.Sprintf(`CASE WHEN %[1]s IN %[2]s THEN '"' || %[1]s || '"' ELSE %[1]s END`, quoted, words)}
	case csvBoolean:
		return column{name, "lower(" + quoted + ")"}
	case csvTime:
		return column{name, `'"' || replace(` + quoted + `, ' ', 'T') || '"'`}
	}
	return column{name, "to_json(" + quoted + ")::VARCHAR"}
}
