package format

import (
	"fmt"
	"strings"
)

// of adds the column and a fix for the job file to a rejection of a column's value. kind is the kind of the span.
func (r *Reject) of(name string, t *typed, kind byte) *Reject {
	r.Column = name
	return r.fix(fixOf(quoteName(name), t, kind, r.Reason))
}

// fix appends a fix to the detail if one is known.
func (r *Reject) fix(how string) *Reject {
	if how != "" {
		r.Detail += "; fix: " + how
	}
	return r
}

// fixOf returns how to change the job so that it accepts such a value. name is the column's name in SQL; kind is the
// kind of the span.
func fixOf(name string, t *typed, kind byte, reason string) string {
	switch reason {
	case WrongType:
		return fixOfType(name, t, kind)
	case BadValue:
		return "if such values are expected, declare the column as text and convert " + name + " in the query"
	case OutOfRange:
		return fixOfRange(t)
	case NUL:
		return "leave the column out if the query does not need it: PostgreSQL cannot store the character"
	}
	return ""
}

func fixOfType(name string, t *typed, kind byte) string {
	switch {
	case t.kind == kindText && (kind == '{' || kind == '['):
		return "declare the column as jsonb, or a field inside it with path"
	case t.kind == kindText:
		return "declare the column as jsonb and take its text in the query: (" + name + "->>'$')"
	case t.epoch:
		return "remove the column's unit if the producer writes times as text"
	case t.kind == kindTimestamp || t.kind == kindTimestampTZ:
		return "give the column the number's unit: s, ms, us or ns"
	case t.kind == kindDate && kind == '0':
		return "declare the column as integer; days since 1970 become a date by DATE '1970-01-01' + " + name
	case kind == '0':
		return "declare the column as numeric(p,s) or double precision if it is not a whole number, otherwise as jsonb"
	case kind == '"':
		return "declare the column as text and cast it in the query: CAST(" + name + " AS " + sqlType(t) + ")"
	}
	return "declare the column as jsonb and extract its parts in the query"
}

// sqlType returns the DuckDB type to which a text of the column is cast.
func sqlType(t *typed) string {
	switch t.kind { //nolint:exhaustive // the types that a string is refused for
	case kindBool:
		return "BOOLEAN"
	case kindFloat32, kindFloat64:
		return "DOUBLE"
	case kindDecimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.precision, t.scale)
	}
	return "BIGINT"
}

func fixOfRange(t *typed) string {
	switch t.kind {
	case kindInt16, kindInt32:
		return "declare the column as bigint"
	case kindInt64:
		return "declare the column as numeric(38,0)"
	case kindDecimal:
		return "declare the column with more digits, up to numeric(38,s), or as text"
	case kindText:
		return "declare the column as text, or with a greater length"
	case kindFloat32:
		return "declare the column as double precision"
	case kindTimestamp, kindTimestampTZ:
		if t.epoch {
			return "correct the column's unit: s, ms, us or ns"
		}
	case kindFloat64, kindJSON:
		return "declare the column as text if the producer can write the number as a string"
	case kindBool, kindBytes, kindDate, kindTime, kindUUID, kindHeaders: // have no range
	}
	return ""
}

// quoteName returns a column's name as written in SQL.
func quoteName(name string) string {
	if plainName(name) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// plainName reports whether SQL accepts the name without quotes.
func plainName(name string) bool {
	for i, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}
