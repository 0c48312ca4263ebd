package format

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/kappactl/kappactl/internal/job"
)

// kind is how a column is converted and laid out.
type kind uint8

const (
	kindBool kind = iota
	kindInt16
	kindInt32
	kindInt64
	kindFloat32
	kindFloat64
	kindDecimal
	kindText
	kindBytes
	kindDate
	kindTime
	kindTimestamp   // without zone, engine time in UTC
	kindTimestampTZ // an instant
	kindUUID
	kindJSON
	kindHeaders
)

// typed is a column's type: its kind with arguments, and the Arrow type of its field.
type typed struct {
	kind      kind
	arrow     arrow.DataType
	extension string // canonical Arrow extension name
	precision int    // of numeric
	scale     int    // of numeric
	length    int    // maximum number of characters of varchar, 0 = unlimited
	anyText   bool   // every text is a value
	epoch     bool   // a time given as an epoch number
	micros    int    // of epoch numbers: decimal places from the unit down to microseconds; negative for a smaller unit
}

// typeOf returns the conversion of a declared column, whose type is canonical.
func typeOf(c job.Column) (typed, error) {
	base, first, second := split(c.Type)
	t := typed{epoch: c.Unit != ""}
	switch base {
	case "boolean":
		t.kind, t.arrow = kindBool, arrow.FixedWidthTypes.Boolean
	case "smallint":
		t.kind, t.arrow = kindInt16, arrow.PrimitiveTypes.Int16
	case "integer":
		t.kind, t.arrow = kindInt32, arrow.PrimitiveTypes.Int32
	case "bigint":
		t.kind, t.arrow = kindInt64, arrow.PrimitiveTypes.Int64
	case "real":
		t.kind, t.arrow = kindFloat32, arrow.PrimitiveTypes.Float32
	case "double precision":
		t.kind, t.arrow = kindFloat64, arrow.PrimitiveTypes.Float64
	case "numeric":
		t.kind, t.precision, t.scale = kindDecimal, first, second
		if first < 1 || first > 38 || second > first {
			return t, fmt.Errorf("column %s: type %s cannot be decoded", c.Name, c.Type)
		}
		t.arrow = &arrow.Decimal128Type{Precision: int32(first), Scale: int32(second)}
	case "text":
		t.kind, t.arrow, t.anyText = kindText, arrow.BinaryTypes.LargeString, true
	case "character varying":
		t.kind, t.arrow, t.length = kindText, arrow.BinaryTypes.LargeString, first
	case "bytea":
		t.kind, t.arrow = kindBytes, arrow.BinaryTypes.LargeBinary
	case "date":
		t.kind, t.arrow = kindDate, arrow.FixedWidthTypes.Date32
	case "time without time zone":
		t.kind, t.arrow = kindTime, arrow.FixedWidthTypes.Time64us
	case "timestamp without time zone":
		t.kind, t.arrow = kindTimestamp, &arrow.TimestampType{Unit: arrow.Microsecond}
	case "timestamp with time zone":
		t.kind, t.arrow = kindTimestampTZ, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	case "uuid":
		t.kind, t.arrow, t.extension = kindUUID, &arrow.FixedSizeBinaryType{ByteWidth: 16}, "arrow.uuid"
	case "json", "jsonb":
		t.kind, t.arrow, t.extension = kindJSON, arrow.BinaryTypes.LargeString, "arrow.json"
	default:
		return t, fmt.Errorf("column %s: type %s cannot be decoded", c.Name, c.Type)
	}
	switch c.Unit {
	case "":
	case "s":
		t.micros = 6
	case "ms":
		t.micros = 3
	case "us":
		t.micros = 0
	case "ns":
		t.micros = -3
	default:
		return t, fmt.Errorf("column %s: unknown unit %s", c.Name, c.Unit)
	}
	return t, nil
}

// split parses numeric(10,2); missing arguments are 0.
func split(t string) (base string, first, second int) {
	base, args, ok := strings.Cut(t, "(")
	if !ok {
		return t, 0, 0
	}
	a, b, _ := strings.Cut(strings.TrimSuffix(args, ")"), ",")
	first, _ = strconv.Atoi(a)
	second, _ = strconv.Atoi(b) // "" is 0
	return base, first, second
}

// metaType returns the type of a meta column.
func metaType(name string) (typed, bool) {
	switch name {
	case "_topic":
		return typed{kind: kindText, arrow: arrow.BinaryTypes.LargeString}, true
	case "_partition":
		return typed{kind: kindInt32, arrow: arrow.PrimitiveTypes.Int32}, true
	case "_offset":
		return typed{kind: kindInt64, arrow: arrow.PrimitiveTypes.Int64}, true
	case "_timestamp":
		return typed{kind: kindTimestampTZ, arrow: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}}, true
	case "_key":
		return typed{kind: kindBytes, arrow: arrow.BinaryTypes.LargeBinary}, true
	case tombstoneField:
		return typed{kind: kindBool, arrow: arrow.FixedWidthTypes.Boolean}, true
	case "_headers":
		return typed{kind: kindHeaders, arrow: arrow.ListOf(headerType())}, true
	}
	return typed{}, false
}

func headerType() *arrow.StructType {
	return arrow.StructOf(
		arrow.Field{Name: "key", Type: arrow.BinaryTypes.LargeString},
		arrow.Field{Name: "value", Type: arrow.BinaryTypes.LargeBinary, Nullable: true},
	)
}

func (t typed) field(name string) arrow.Field {
	f := arrow.Field{Name: name, Type: t.arrow, Nullable: true}
	if t.extension != "" {
		f.Metadata = arrow.NewMetadata([]string{"ARROW:extension:name", "ARROW:extension:metadata"},
			[]string{t.extension, ""})
	}
	return f
}
