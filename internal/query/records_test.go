package query

import (
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// record is the values of one record by column name: Go values of the column's Arrow type; nil is NULL.
type record map[string]any

// pick is one of the values.
func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// Days and moments with the ends that both engines hold.
const (
	beforeChrist = -735000 // days: 0043 BC
	farAhead     = 3700000 // days: the year 12100
	microsPerDay = 24 * 60 * 60 * 1e6
	infiniteDay  = math.MaxInt32
	infiniteTime = math.MaxInt64
)

// randomRecord makes a record of sourceText's columns, with few distinct keys and with the values at the edges.
func randomRecord(r *rand.Rand, partition int32, offset int64) record {
	words := []string{"", "/a", "/A", "/b/c", "é", "e\u0301", "😀", `quo"te`, `back\slash`, "a,b{}", " NULL ", "NULL", "tab\tnew\nline", "Z", "z", "42", strings.Repeat("long ", 30)}
	day := func() int32 {
		return pick[int32](r, 0, 19000, 19001, beforeChrist, farAhead, infiniteDay, -infiniteDay)
	}
	moment := func() int64 {
		if r.IntN(12) == 0 {
			return pick(r, int64(infiniteTime), -infiniteTime)
		}
		d := pick(r, 0, 19000, 19001, beforeChrist, farAhead)
		return int64(d)*microsPerDay + pick[int64](r, 0, 1, 3_600_000_000, 86_399_999_999)
	}
	double := func() float64 {
		return pick[float64](r, 0, 1.5, -2.25, 0.1, 1e-300, 1e15, r.NormFloat64(), r.NormFloat64()*1e6)
	}
	whole := func(edges ...int64) int64 {
		if r.IntN(3) == 0 {
			return pick(r, edges...)
		}
		return r.Int64N(1000) - 200
	}
	out := record{
		"user_id": pick(r, words...), "url": pick(r, words...),
		"ts": moment(), "local": moment(), "day": day(), "clock": pick(r, int64(0), 1, 86_399_999_999, 43_200_000_000),
		"duration_ms": whole(math.MaxInt64, math.MinInt64, 0), "small": int16(whole(math.MaxInt16, math.MinInt16+1)),
		"we ird": int32(whole(math.MaxInt32, math.MinInt32)), "d": double(), "f": float32(double()),
		"price": whole(9999999999, -9999999999, 1), "ok": r.IntN(2) == 0,
		"doc":    pick(r, `{"a":"x","b":1.5,"c":[1,"two"]}`, `{"a":"y"}`, `{"b":2,"c":null}`, `"text"`, `[1]`, `null`),
		"id":     pick(r, "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "7f000000-1111-4222-8333-444444444444", "80000000-1111-4222-8333-444444444444"),
		"raw":    pick(r, []byte{}, []byte{0}, []byte{0, 255}, []byte{127}, []byte{128, 1}, []byte(`\x41`)),
		"_topic": "pageviews", "_partition": partition, "_offset": offset, "_timestamp": moment(), "_key": []byte("k"),
	}
	for name := range out {
		if !strings.HasPrefix(name, "_") && r.IntN(8) == 0 {
			out[name] = nil
		}
	}
	return out
}

// weird puts the doubles that are no numbers into some records: totals of them are compared on their own.
func weird(r *rand.Rand, records []record) {
	for _, rec := range records {
		if r.IntN(5) == 0 {
			rec["d"] = pick(r, math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0.0)
			rec["f"] = pick(r, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), float32(0))
		}
	}
}

func fieldType(c column) arrow.DataType {
	switch c.typ {
	case "VARCHAR", "JSON":
		return arrow.BinaryTypes.LargeString
	case "UUID":
		return &arrow.FixedSizeBinaryType{ByteWidth: 16}
	case "BOOLEAN":
		return arrow.FixedWidthTypes.Boolean
	case "SMALLINT":
		return arrow.PrimitiveTypes.Int16
	case "INTEGER":
		return arrow.PrimitiveTypes.Int32
	case "BIGINT":
		return arrow.PrimitiveTypes.Int64
	case "FLOAT":
		return arrow.PrimitiveTypes.Float32
	case "DOUBLE":
		return arrow.PrimitiveTypes.Float64
	case "BLOB":
		return arrow.BinaryTypes.LargeBinary
	case "DATE":
		return arrow.FixedWidthTypes.Date32
	case "TIME":
		return arrow.FixedWidthTypes.Time64us
	case "TIMESTAMP":
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	case "TIMESTAMP WITH TIME ZONE":
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	case "DECIMAL(10,2)":
		return &arrow.Decimal128Type{Precision: 10, Scale: 2}
	default: // _headers
		return arrow.ListOf(arrow.StructOf(arrow.Field{Name: "key", Type: arrow.BinaryTypes.LargeString},
			arrow.Field{Name: "value", Type: arrow.BinaryTypes.LargeBinary, Nullable: true}))
	}
}

func appendValue(t testing.TB, b array.Builder, v any) {
	t.Helper()
	switch b := b.(type) {
	case *array.LargeStringBuilder:
		b.Append(v.(string))
	case *array.FixedSizeBinaryBuilder:
		id, err := hex.DecodeString(strings.ReplaceAll(v.(string), "-", ""))
		if err != nil {
			t.Fatal(err)
		}
		b.Append(id)
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int16Builder:
		b.Append(v.(int16))
	case *array.Int32Builder:
		b.Append(v.(int32))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Float32Builder:
		b.Append(v.(float32))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.BinaryBuilder:
		b.Append(v.([]byte))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.(int32)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v.(int64)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.(int64)))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(v.(int64)))
	default:
		t.Fatalf("no value for %T", b)
	}
}

// reader streams records as batches of the given fields.
func reader(t testing.TB, source []column, fields []string, records []record, size int) *stream {
	t.Helper()
	types := make([]arrow.Field, len(fields))
	for i, f := range fields {
		at := slices.IndexFunc(source, func(c column) bool { return c.name == f })
		types[i] = arrow.Field{Name: f, Type: fieldType(source[at]), Nullable: true}
		if extension := map[string]string{"UUID": "arrow.uuid", "JSON": "arrow.json"}[source[at].typ]; extension != "" {
			types[i].Metadata = arrow.NewMetadata([]string{"ARROW:extension:name", "ARROW:extension:metadata"}, []string{extension, ""})
		}
	}
	s := &stream{schema: rowSchema(types...)}
	s.next = func() (arrow.RecordBatch, error) {
		if len(records) == 0 {
			return nil, nil
		}
		b := array.NewRecordBuilder(memory.DefaultAllocator, s.schema)
		defer b.Release()
		row := b.Field(0).(*array.StructBuilder)
		for _, rec := range records[:min(size, len(records))] {
			row.Append(true)
			for i, f := range fields {
				if rec[f] == nil {
					row.FieldBuilder(i).AppendNull()
				} else {
					appendValue(t, row.FieldBuilder(i), rec[f])
				}
			}
		}
		records = records[min(size, len(records)):]
		return b.NewRecordBatch(), nil
	}
	return s
}
