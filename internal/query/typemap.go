package query

import (
	"regexp"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// collateC makes text compare by bytes, as in DuckDB.
const collateC = ` COLLATE "C"`

// metaColumns returns the columns that every source has in addition to the declared ones, with their DuckDB types.
func metaColumns() []column {
	return []column{
		{"_topic", "VARCHAR"},
		{"_partition", "INTEGER"},
		{"_offset", "BIGINT"},
		{"_timestamp", "TIMESTAMP WITH TIME ZONE"},
		{"_key", "BLOB"},
		{"_headers", "STRUCT(key VARCHAR, value BLOB)[]"},
	}
}

// sourceColumns returns the columns of relation source with their DuckDB types: declared ones in the order of the file,
// then the meta columns.
func sourceColumns(src job.Source) []column {
	out := make([]column, 0, len(src.Columns)+len(metaColumns()))
	for _, c := range src.Columns {
		out = append(out, column{c.Name, sourceType(c.Type)})
	}
	return append(out, metaColumns()...)
}

// sourceType returns the DuckDB type of a column declared with a canonical PostgreSQL type.
func sourceType(pg string) string {
	base, args := splitType(pg)
	switch base {
	case "boolean":
		return "BOOLEAN"
	case "smallint":
		return "SMALLINT"
	case "integer":
		return "INTEGER"
	case "bigint":
		return "BIGINT"
	case "real":
		return "FLOAT"
	case "double precision":
		return "DOUBLE"
	case "numeric":
		return "DECIMAL" + args
	case "bytea":
		return "BLOB"
	case "date":
		return "DATE"
	case "time without time zone":
		return "TIME"
	case "timestamp without time zone":
		return "TIMESTAMP"
	case "timestamp with time zone":
		return "TIMESTAMP WITH TIME ZONE"
	case "uuid":
		return "UUID"
	case "json", "jsonb":
		return "JSON"
	default:
		return "VARCHAR" // text, character varying(n)
	}
}

// splitType splits "numeric(10,2)" into base and arguments with their parentheses.
func splitType(t string) (base, args string) {
	if i := strings.IndexByte(t, '('); i >= 0 && strings.HasSuffix(t, ")") {
		return t[:i], t[i:]
	}
	return t, ""
}

// resultType returns the PostgreSQL type, as format_type prints it, that can hold every value of a DuckDB type.
func resultType(duck string) (pg string, ok bool) {
	duck = listType(duck)
	if element, isList := strings.CutSuffix(duck, "[]"); isList {
		if pg, ok := scalarType(element); ok && pg != "jsonb" {
			return pg + "[]", true
		}
		_, ok := resultType(element)
		return "jsonb", ok // lists of lists or objects: PostgreSQL arrays must be rectangular
	}
	if strings.HasPrefix(duck, "STRUCT(") || strings.HasPrefix(duck, "MAP(") {
		return "jsonb", true
	}
	return scalarType(duck)
}

// fixedSize matches the size of DuckDB's arrays of a fixed size.
var fixedSize = regexp.MustCompile(`\[[0-9]+\]`)

// listType returns the type of lists for arrays of a fixed size, which are stored alike; other types are returned as
// they are.
func listType(duck string) string {
	if !strings.HasSuffix(duck, "]") {
		return duck
	}
	return fixedSize.ReplaceAllString(duck, "[]")
}

func scalarType(duck string) (pg string, ok bool) {
	base, args := splitType(duck)
	switch base {
	case "BOOLEAN":
		return "boolean", true
	case "TINYINT", "SMALLINT", "UTINYINT":
		return "smallint", true
	case "INTEGER", "USMALLINT":
		return "integer", true
	case "BIGINT", "UINTEGER":
		return "bigint", true
	case "UBIGINT", "HUGEINT", "UHUGEINT":
		return "numeric", true
	case "DECIMAL":
		return "numeric" + args, true
	case "FLOAT":
		return "real", true
	case "DOUBLE":
		return "double precision", true
	case "VARCHAR":
		return "text", true
	case "BLOB":
		return "bytea", true
	case "DATE":
		return "date", true
	case "TIME":
		return "time without time zone", true
	case "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS":
		return "timestamp without time zone", true
	case "TIMESTAMP WITH TIME ZONE":
		return "timestamp with time zone", true
	case "INTERVAL":
		return "interval", true
	case "UUID":
		return "uuid", true
	case "JSON":
		return "jsonb", true
	case "ENUM", `"NULL"`:
		return "text", true
	case "BIGNUM":
		return "numeric", true
	case "BIT":
		return "bit varying", true
	case "TIME WITH TIME ZONE":
		return "time with time zone", true
	default:
		return "", false
	}
}

// typeCure returns what to cast a value of an unsupported DuckDB type to.
func typeCure(duck string) string {
	if duck == "TIMESTAMP_NS" {
		return "cast it to TIMESTAMP: PostgreSQL keeps microseconds"
	}
	return "cast it to VARCHAR"
}

// keyProblem returns why values of a DuckDB type cannot be part of the group key, or "".
func keyProblem(duck, pg string) (cause, cure string) {
	switch pg {
	case "jsonb":
		return "PostgreSQL does not keep " + duck +
				" as it is (order and repetition of fields are lost), so it cannot be a key",
			"take the fields out that you group by, or cast it to VARCHAR"
	case "time with time zone", "time with time zone[]":
		return "two different values of TIME WITH TIME ZONE can be equal, so it cannot be a key", "cast it to TIME or VARCHAR"
	case "interval", "interval[]":
		return "two different INTERVAL values can be equal in PostgreSQL (1 month and 30 days), so it cannot be a key",
			"use a number of seconds: epoch(x)"
	default:
		return "", ""
	}
}

// timeKey reports whether a key of this PostgreSQL type goes first in the index, regardless of its position in GROUP
// BY. New hours of old keys then touch few index pages.
func timeKey(pg string) bool {
	return pg == "date" || strings.HasPrefix(pg, "timestamp ")
}

// numeric reports whether values of the PostgreSQL type are numbers.
func numeric(pg string) bool {
	switch base, _ := splitType(pg); base {
	case "smallint", "integer", "bigint", "numeric", "real", "double precision":
		return true
	}
	return false
}

// textual reports whether values of the PostgreSQL type are text, whose comparison needs the C collation.
func textual(pg string) bool { return strings.TrimSuffix(pg, "[]") == "text" }

// stored returns the type with the collation that its column has in the version table.
func stored(pg string) string {
	if textual(pg) {
		return pg + collateC
	}
	return pg
}

// comparable reports whether PostgreSQL can merge min and max of a DuckDB type with the same order.
func comparable(duck, pg string) bool {
	switch pg {
	case "jsonb", "interval", "bit varying", "time with time zone":
		return false
	}
	return !strings.HasSuffix(pg, "[]") && duck != "JSON" && !strings.HasPrefix(duck, "ENUM")
}
