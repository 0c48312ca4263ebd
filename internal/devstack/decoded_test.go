package devstack

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// decoded loads n rows of a file and reads the records back as columns of the types given; a row is the JSON of its values.
func decoded(t *testing.T, path string, n int, columns ...job.Column) []map[string]any {
	t.Helper()
	brokers := kafkatest.Fake(t)
	load(t, brokers, LoadConfig{File: path, Topic: "decoded", Partitions: 1})
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = columns[i].Name
		typ, err := job.ParseType(columns[i].Type)
		if err != nil {
			t.Fatal(err)
		}
		columns[i].Type = typ
	}
	d, err := format.New(job.Source{Format: "json", Columns: columns}, names)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, r := range read(t, brokers, "decoded", n)[0] {
		if reject := d.Append(r); reject != nil {
			t.Fatalf("%s: %v", r.Value, reject)
		}
	}
	batch := d.Take()
	defer batch.Release()
	text, err := batch.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ R map[string]any }
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	out := make([]map[string]any, len(rows))
	for i, r := range rows {
		out[i] = r.R
	}
	return out
}

// TestEachParquetTypeIsReadBackAsItsOwnType: three rows, one with ordinary values, one with the extreme ones, one with nulls.
func TestEachParquetTypeIsReadBackAsItsOwnType(t *testing.T) {
	for _, c := range []struct{ parquet, value, extreme, declared, want, wantExtreme string }{
		{"BOOLEAN", "true", "false", "boolean", `true`, `false`},
		{"SMALLINT", "7", "-32768", "smallint", `7`, `-32768`},
		{"INTEGER", "7", "2147483647", "integer", `7`, `2147483647`},
		{"BIGINT", "7", "-9007199254740993", "bigint", `7`, `-9007199254740993`},
		{"DECIMAL(30,2)", "1.10", "1234567890123456789012.34", "numeric(30,2)", `"1.1"`, `"1234567890123456789012.34"`},
		{"FLOAT", "2.5", "'NaN'", "real", `2.5`, `"NaN"`},
		{"FLOAT", "'Infinity'", "'-Infinity'", "real", `"+Inf"`, `"-Inf"`},
		{"DOUBLE", "0.1", "'NaN'", "double precision", `0.1`, `"NaN"`},
		{"DOUBLE", "'Infinity'", "'-Infinity'", "double precision", `"+Inf"`, `"-Inf"`},
		{"DOUBLE", "5e-324", "-1.7976931348623157e308", "double precision", `5e-324`, `-1.7976931348623157e+308`},
		{"VARCHAR", "'a\"b\\c' || chr(9) || chr(10) || chr(1)", "''", "text", `"a\"b\\c\t\n\u0001"`, `""`},
		{"BLOB", `'\x62\x00\xFF'`, `''`, "bytea", `"YgD/"`, `""`},
		{"DATE", "'2001-02-03'", "'0001-01-01'", "date", `"2001-02-03"`, `"0001-01-01"`},
		{"TIME", "'04:05:06.7'", "'23:59:59.999999'", "time", `"04:05:06.7"`, `"23:59:59.999999"`},
		{"TIMESTAMP", "'2001-02-03 04:05:06'", "'9999-12-31 23:59:59.999999'", "timestamp", `"2001-02-03T04:05:06"`, `"9999-12-31T23:59:59.999999"`},
		{
			"TIMESTAMPTZ", "'2001-02-03 04:05:06.5+02'", "'1969-12-31 23:59:59.999999+00'", "timestamptz",
			`"2001-02-03T02:05:06.5Z"`, `"1969-12-31T23:59:59.999999Z"`,
		},
		{
			"UUID", "'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'00000000-0000-0000-0000-000000000000'", "uuid",
			`"sO68mZwLTvi7bWu5vTgKEQ=="`, `"AAAAAAAAAAAAAAAAAAAAAA=="`,
		},
		{"JSON", `'{"k": [1.50]}'`, `'{"k":' || chr(10) || chr(9) || '1}'`, "json", `"{\"k\": [1.50]}"`, `"{\"k\":  1}"`},
	} {
		t.Run(c.parquet+" "+c.value, func(t *testing.T) {
			path := parquet(t, "SELECT unnest([("+c.value+")::"+c.parquet+", ("+c.extreme+")::"+c.parquet+", NULL]) AS v")
			want := make([]map[string]any, 3)
			for i, text := range []string{c.want, c.wantExtreme, "null"} {
				if err := json.Unmarshal([]byte(`{"v":`+text+`}`), &want[i]); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, decoded(t, path, 3, job.Column{Name: "v", Type: c.declared})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNestedParquetValuesAreWrittenAsTheirColumnsAre(t *testing.T) {
	path := parquet(t, `SELECT ['\x62'::BLOB, NULL] AS bytes, ['NaN'::DOUBLE, 'Infinity'::DOUBLE, 1.5] AS doubles,
		[[1.10::DECIMAL(30,2), 1234567890123456789012.34::DECIMAL(30,2)], [], NULL] AS decimals,
		{'at': TIMESTAMP '2001-02-03 04:05:06', 'it''s "x"': {'b': ['\x62'::BLOB], 'none': NULL::INTEGER}} AS struct,
		MAP {'a"b': '-Infinity'::DOUBLE, 'c': NULL} AS map, MAP {1: [TIMESTAMPTZ '2001-02-03 04:05:06+02']} AS numbered,
		NULL::INTEGER[] AS no_list, NULL::STRUCT(a INTEGER) AS no_struct, NULL::MAP(VARCHAR, INTEGER) AS no_map`)
	columns := []job.Column{}
	want := map[string]any{
		"bytes":    `["Yg==",null]`,
		"doubles":  `["NaN","Infinity",1.5]`,
		"decimals": `[[1.10,1234567890123456789012.34],[],null]`,
		"struct":   `{"at":"2001-02-03T04:05:06","it's \"x\"":{"b":["Yg=="],"none":null}}`,
		"map":      `{"a\"b":"-Infinity","c":null}`,
		"numbered": `{"1":["2001-02-03T02:05:06Z"]}`,
		"no_list":  nil, "no_struct": nil, "no_map": nil,
	}
	for name := range want {
		columns = append(columns, job.Column{Name: name, Type: "json"})
	}
	if diff := cmp.Diff([]map[string]any{want}, decoded(t, path, 1, columns...)); diff != "" {
		t.Error(diff)
	}
}

func TestCSVColumnOfNumbersAndNaNIsReadBackAsDoubles(t *testing.T) {
	path := file(t, "rows.csv", "v,w\n1.5,NaN\nNaN,inf\nInfinity,x\n-Infinity,\n,y\n")
	want := []map[string]any{
		{"v": 1.5, "w": "NaN"}, {"v": "NaN", "w": "inf"}, {"v": "+Inf", "w": "x"}, {"v": "-Inf", "w": nil}, {"v": nil, "w": "y"},
	}
	got := decoded(t, path, 5, job.Column{Name: "v", Type: "double precision"}, job.Column{Name: "w", Type: "text"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestKeysOfATableFileAreTheTextOfTheColumn, also when it has characters that end a line or a field.
func TestKeysOfATableFileAreTheTextOfTheColumn(t *testing.T) {
	brokers := kafkatest.Fake(t)
	path := parquet(t, `SELECT unnest(['a' || chr(9) || 'b' || chr(10) || 'c', '', 'null', NULL]) AS k`)
	load(t, brokers, LoadConfig{File: path, Topic: "keys", Partitions: 1, Key: "k"})
	var got [][]byte
	for _, r := range read(t, brokers, "keys", 4)[0] {
		got = append(got, r.Key)
	}
	if diff := cmp.Diff([][]byte{[]byte("a\tb\nc"), {}, []byte("null"), nil}, got); diff != "" {
		t.Error(diff)
	}
}
