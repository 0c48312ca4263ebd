package devstack

import (
	"fmt"
	"strings"

	"github.com/duckdb/duckdb-go/v2"
)

// column is one column of a table file.
type column struct {
	name string
	json string // DuckDB SQL for the JSON text of the value, NULL for a null
}

// object returns SQL for a JSON object with the members given.
func object(members []column) string {
	parts := make([]string, len(members))
	separator := "{"
	for i, m := range members {
		// DuckDB computes the text in front of the value once.
		parts[i] = fmt.Sprintf("'%s' || to_json(%s)::VARCHAR || ':', coalesce(%s, 'null')",
			separator, quoteText(m.name), m.json)
		separator = ","
	}
	return "concat(" + strings.Join(parts, ", ") + ", '}')"
}

// jsonOf returns SQL for the JSON text of a value in the form that the record decoder reads back: every digit of a
// number, base64, ISO 8601 times, and "NaN", "Infinity" and "-Infinity". The text has no line ends and tabs. The SQL is
// NULL for a null. depth is the number of lists and maps around the value. The SQL concatenates text, because to_json
// of a whole row passes decimals through a double and writes NaN without quotes.
func jsonOf(expr string, t duckdb.TypeInfo, depth int) string {
	switch d := t.Details().(type) {
	case *duckdb.ListDetails:
		return listJSON(expr, d.Child, depth)
	case *duckdb.ArrayDetails:
		return listJSON(expr, d.Child, depth)
	case *duckdb.MapDetails:
		return mapJSON(expr, d, depth)
	case *duckdb.StructDetails:
		return structJSON(expr, d, depth)
	}
	return fmt.Sprintf(scalarJSON(t), expr)
}

// scalarJSON is the format of the SQL for a value that contains no other values; %[1]s is the value.
func scalarJSON(t duckdb.TypeInfo) string {
	switch t.InternalType() {
	case duckdb.TYPE_BOOLEAN, duckdb.TYPE_TINYINT, duckdb.TYPE_SMALLINT, duckdb.TYPE_INTEGER, duckdb.TYPE_BIGINT,
		duckdb.TYPE_UTINYINT, duckdb.TYPE_USMALLINT, duckdb.TYPE_UINTEGER, duckdb.TYPE_UBIGINT,
		duckdb.TYPE_HUGEINT, duckdb.TYPE_UHUGEINT, duckdb.TYPE_BIGNUM, duckdb.TYPE_DECIMAL:
		return "%[1]s::VARCHAR"
	case duckdb.TYPE_FLOAT, duckdb.TYPE_DOUBLE:
		return `CASE WHEN isfinite(%[1]s) THEN %[1]s::VARCHAR WHEN isnan(%[1]s) THEN '"NaN"' ` +
			`WHEN %[1]s > 0 THEN '"Infinity"' WHEN %[1]s < 0 THEN '"-Infinity"' END`
	case duckdb.TYPE_BLOB:
		return `'"' || to_base64(%[1]s) || '"'`
	case duckdb.TYPE_TIMESTAMP, duckdb.TYPE_TIMESTAMP_S, duckdb.TYPE_TIMESTAMP_MS, duckdb.TYPE_TIMESTAMP_NS:
		return `'"' || replace(%[1]s::VARCHAR, ' ', 'T') || '"'`
	case duckdb.TYPE_TIMESTAMP_TZ:
		return `'"' || replace(timezone('UTC', %[1]s)::VARCHAR, ' ', 'T') || ` +
			`CASE WHEN isfinite(%[1]s) THEN 'Z"' ELSE '"' END`
	case duckdb.TYPE_VARCHAR:
		if t.Alias() == "JSON" { // line ends and tabs are only between its tokens
			return "translate(%[1]s::VARCHAR, chr(9) || chr(10) || chr(13), '   ')"
		}
	case duckdb.TYPE_UNION, duckdb.TYPE_VARIANT:
		return "to_json(%[1]s)::VARCHAR"
	default: // DATE, TIME, UUID, ENUM, INTERVAL, BIT, …
	}
	return "to_json(%[1]s::VARCHAR)::VARCHAR"
}

func listJSON(expr string, item duckdb.TypeInfo, depth int) string {
	v := fmt.Sprintf("v%d", depth)
	return joined("[]", expr, v, fmt.Sprintf("coalesce(%s, 'null')", jsonOf(v, item, depth+1)))
}

func mapJSON(expr string, d *duckdb.MapDetails, depth int) string {
	v := fmt.Sprintf("v%d", depth)
	value := jsonOf("struct_extract("+v+", 'value')", d.Value, depth+1)
	member := fmt.Sprintf("to_json(struct_extract(%s, 'key')::VARCHAR)::VARCHAR || ':' || coalesce(%s, 'null')", v, value)
	return joined("{}", "map_entries("+expr+")", v, member)
}

// joined returns SQL for the texts of a list's items, with commas between and the two brackets around them.
func joined(brackets, list, item, text string) string {
	return fmt.Sprintf("'%c' || array_to_string(list_transform(%s, lambda %s: %s), ',') || '%c'",
		brackets[0], list, item, text, brackets[1])
}

func structJSON(expr string, d *duckdb.StructDetails, depth int) string {
	members := make([]column, len(d.Entries))
	for i, e := range d.Entries {
		field := fmt.Sprintf("struct_extract(%s, %s)", expr, quoteText(e.Name()))
		members[i] = column{e.Name(), jsonOf(field, e.Info(), depth)}
	}
	return fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN %s END", expr, object(members))
}

func quoteName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func quoteText(s string) string { return `'` + strings.ReplaceAll(s, `'`, `''`) + `'` }
