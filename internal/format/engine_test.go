package format

import (
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/duckdb/duckdb-go/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// The engine sees every column as the type that is declared, and the value that was in the record.
func TestEngineReadsBatchesAsTheDeclaredTypes(t *testing.T) {
	table := []struct{ pg, duck, value, text string }{
		{"boolean", "BOOLEAN", `true`, "true"},
		{"smallint", "SMALLINT", `-5`, "-5"},
		{"integer", "INTEGER", `70000`, "70000"},
		{"bigint", "BIGINT", `9007199254740993`, "9007199254740993"},
		{"real", "FLOAT", `0.5`, "0.5"},
		{"double precision", "DOUBLE", `0.1`, "0.1"},
		{"numeric(4,2)", "DECIMAL(4,2)", `-12.34`, "-12.34"},
		{"numeric(9,0)", "DECIMAL(9,0)", `123456789`, "123456789"},
		{"numeric(18,4)", "DECIMAL(18,4)", `12345678901234.5678`, "12345678901234.5678"},
		{"numeric(38,9)", "DECIMAL(38,9)", `-12345678901234567890123456789.123456789`, "-12345678901234567890123456789.123456789"},
		{"text", "VARCHAR", `"h\u00e9"`, "hé"},
		{"character varying(5)", "VARCHAR", `"abc"`, "abc"},
		{"bytea", "BLOB", `"aGk="`, "hi"},
		{"date", "DATE", `"2024-02-29"`, "2024-02-29"},
		{"time without time zone", "TIME", `"10:05:00.5"`, "10:05:00.5"},
		{"timestamp without time zone", "TIMESTAMP", `"2026-01-01T10:00:00.000001"`, "2026-01-01 10:00:00.000001"},
		{"timestamp with time zone", "TIMESTAMP WITH TIME ZONE", `"2026-01-01T10:00:00+01:00"`, "2026-01-01 09:00:00+00"},
		{"uuid", "UUID", `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
		{"json", "JSON", `{"a": 1}`, `{"a": 1}`},
		{"jsonb", "JSON", `[1]`, `[1]`},
	}
	for _, c := range table {
		t.Run(c.pg, func(t *testing.T) {
			d, err := New(job.Source{Format: "json", Columns: []job.Column{{Name: "v", Type: c.pg}}}, []string{"v"})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range []string{`{"v":` + c.value + `}`, `{}`, `{"v":` + c.value + `}`} {
				if r := d.Append(&kgo.Record{Value: []byte(v)}); r != nil {
					t.Fatal(r)
				}
			}
			got := ask(t, d, "SELECT typeof(r.v) || '|' || coalesce(r.v::VARCHAR, 'NULL') FROM batch")
			want := []string{c.duck + "|" + c.text, c.duck + "|NULL", c.duck + "|" + c.text}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEngineReadsMetaColumns(t *testing.T) {
	d, err := New(job.Source{Format: "json"}, MetaColumns())
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range []*kgo.Record{
		{
			Topic: "t", Partition: 2, Offset: 9, Timestamp: time.UnixMilli(0), Key: []byte("k"),
			Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("x")}, {Key: "a"}, {Key: "b", Value: []byte{}}},
		},
		{Topic: "t", Timestamp: time.UnixMilli(-1)},
	} {
		rec.Value = []byte(`{}`)
		if r := d.Append(rec); r != nil {
			t.Fatal(r)
		}
	}
	got := ask(t, d, `SELECT concat_ws(';', r._topic, r._partition, r._offset, coalesce(r._timestamp::VARCHAR, 'none'), coalesce(r._key::VARCHAR, 'none'),
		typeof(r._headers), len(r._headers), list_filter(r._headers, h -> h.key = 'b')[1].value, r._headers[2].value IS NULL) FROM batch`)
	want := []string{
		`t;2;9;1970-01-01 00:00:00+00;k;STRUCT("key" VARCHAR, "value" BLOB)[];3;;true`,
		`t;0;0;none;none;STRUCT("key" VARCHAR, "value" BLOB)[];0;true`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// ask runs a query that yields one text column over the batch under construction.
func ask(t *testing.T, d *Decoder, sql string) []string {
	t.Helper()
	ctx := t.Context()
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connector.Close() }()
	conn, err := connector.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	engine, err := duckdb.NewArrowFromConn(conn)
	if err != nil {
		t.Fatal(err)
	}
	zone, err := engine.QueryContext(ctx, "SET TimeZone='UTC'")
	if err != nil {
		t.Fatal(err)
	}
	zone.Release()
	batch := d.Take()
	defer batch.Release()
	in, err := array.NewRecordReader(d.Schema(), []arrow.RecordBatch{batch})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Release()
	release, err := engine.RegisterView(in, "batch")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	out, err := engine.QueryContext(ctx, sql)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	var rows []string
	for out.Next() {
		col := out.RecordBatch().Column(0).(*array.String)
		for i := range col.Len() {
			rows = append(rows, strings.Clone(col.Value(i))) // the engine owns the memory
		}
	}
	if err := out.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}
