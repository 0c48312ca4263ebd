package format

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// fields decodes a record of columns v, w, … of the types and gives the fields as JSON, or the reason of its refusal alone.
func fields(t *testing.T, format string, types []string, value string) []string {
	t.Helper()
	src := job.Source{Format: format}
	var names []string
	for i, typ := range types {
		canonical, err := job.ParseType(strings.TrimSuffix(typ, " ms"))
		if err != nil {
			t.Fatalf("type %s: %v", typ, err)
		}
		c := job.Column{Name: string(rune('v' + i)), Type: canonical}
		if strings.HasSuffix(typ, " ms") {
			c.Unit = "ms"
		}
		src.Columns, names = append(src.Columns, c), append(names, c.Name)
	}
	d, err := New(src, names)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if r := d.Append(&kgo.Record{Value: []byte(value)}); r != nil {
		return []string{r.Reason}
	}
	var row map[string]json.RawMessage
	if err := json.Unmarshal([]byte(rows(t, d)[0]), &row); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, n := range names {
		out = append(out, string(row[n]))
	}
	return out
}

func TestCSVRows(t *testing.T) {
	three := []string{"text", "integer", "text"}
	for value, want := range map[string][]string{
		"a,1,b":                             {`"a"`, `1`, `"b"`},
		"a,1,b\n":                           {`"a"`, `1`, `"b"`},
		"a,1,b\r\n":                         {`"a"`, `1`, `"b"`},
		"\"a\",\"1\",\"b\"\r\n":             {`"a"`, `1`, `"b"`},
		`"a,""x""",1,"line` + "\n" + `two"`: {`"a,\"x\""`, `1`, `"line\ntwo"`},
		",,":                                {`null`, `null`, `null`},
		`"",,""`:                            {`""`, `null`, `""`},
		" a ,1, b":                          {`" a "`, `1`, `" b"`},
		"é,1,日本":                            {`"é"`, `1`, `"日本"`},
		"a,1":                               {NotCSV},
		"a":                                 {NotCSV},
		"":                                  {NotCSV},
		"a,1,b,c":                           {NotCSV},
		"a,1,b,":                            {NotCSV},
		"a,1,b\nc,2,d":                      {NotCSV},
		"a,1,b\n\n":                         {NotCSV},
		`a"b,1,c`:                           {NotCSV},
		`"a,1,b`:                            {NotCSV},
		`"a"b,1,c`:                          {NotCSV},
		"a,x,b":                             {BadValue},
		"a, 1,b":                            {BadValue},
		"a,2147483648,b":                    {OutOfRange},
		"a,1.5,b":                           {WrongType},
		"a\x00,1,b":                         {NUL},
		"a,\"\",b":                          {BadValue},
		"a\xff,1,b":                         {InvalidUTF8},
	} {
		if diff := cmp.Diff(want, fields(t, "csv", three, value)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", value, diff)
		}
	}
}

func TestCSVConversions(t *testing.T) {
	for _, tt := range []struct{ typ, value, want string }{
		{"bigint", "9223372036854775807", "9223372036854775807"},
		{"bigint", "-0", "0"},
		{"bigint", "1e3", "1000"},
		{"bigint", "+1", BadValue},
		{"bigint", "0x10", BadValue},
		{"bigint", "01", BadValue},
		{"bigint", "true", BadValue},
		{"bigint", `"1,000"`, BadValue},
		{"numeric(10,2)", "12.30", `"12.3"`},
		{"numeric(10,2)", "12.345", OutOfRange},
		{"double precision", "0.1", "0.1"},
		{"double precision", "NaN", BadValue},
		{"double precision", "Infinity", BadValue},
		{"double precision", ".5", BadValue},
		{"double precision", "1e400", OutOfRange},
		{"boolean", "true", "true"},
		{"boolean", "f", "false"},
		{"boolean", "TRUE", BadValue},
		{"boolean", "1", BadValue},
		{"varchar(3)", "abc", `"abc"`},
		{"varchar(3)", "abcd", OutOfRange},
		{"text", `a\u0041`, `"a\\u0041"`}, // no escapes but doubled quotes
		{"date", "2026-01-31", `"2026-01-31"`},
		{"date", "31.01.2026", BadValue},
		{"timestamptz", "2026-01-31T10:00:00+01:00", `"2026-01-31 09:00:00Z"`},
		{"timestamptz ms", "1767261600000", `"2026-01-01 10:00:00Z"`},
		{"timestamptz ms", "2026-01-31", BadValue},
		{"uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`},
		{"bytea", "aGk=", `"aGk="`},
		{"bytea", `\x00`, BadValue},
		{"jsonb", `"{""a"":[1, 2]}"`, `"{\"a\":[1, 2]}"`},
		{"jsonb", `"""x"""`, `"\"x\""`},
		{"jsonb", `12`, `"12"`},
		{"jsonb", `null`, `null`},
		{"jsonb", `{a}`, BadValue},
		{"jsonb", `"{} {}"`, BadValue},
		{"jsonb", `"""\u0000"""`, NUL},
	} {
		got := fields(t, "csv", []string{tt.typ}, tt.value)[0]
		if tt.typ == "uuid" || strings.HasPrefix(tt.typ, "timestamp") { // Arrow's own text of them is not ours
			if strings.HasPrefix(tt.want, `"`) == (got == BadValue || got == OutOfRange || got == WrongType) {
				t.Errorf("%s %q: got %s, want %s", tt.typ, tt.value, got, tt.want)
			}
			continue
		}
		if got != tt.want {
			t.Errorf("%s %q: got %s, want %s", tt.typ, tt.value, got, tt.want)
		}
	}
}

func TestRawValues(t *testing.T) {
	for _, tt := range []struct{ typ, value, want string }{
		{"text", "any, \"line\" of\ntext", `"any, \"line\" of\ntext"`},
		{"text", "", `""`},
		{"text", "a\x00b", NUL},
		{"text", "\xff", InvalidUTF8},
		{"varchar(2)", "日本", `"日本"`},
		{"varchar(2)", "abc", OutOfRange},
		{"bytea", "\x00\xff", `"AP8="`},
		{"bytea", "", `""`},
		{"json", ` [1, "x"] `, `"[1, \"x\"]"`},
		{"jsonb", `"x"`, `"\"x\""`},
		{"jsonb", `null`, `null`},
		{"jsonb", ``, NotJSON},
		{"jsonb", `{} x`, NotJSON},
		{"jsonb", `"\u0000"`, NUL},
	} {
		if got := fields(t, "raw", []string{tt.typ}, tt.value)[0]; got != tt.want {
			t.Errorf("%s %q: got %s, want %s", tt.typ, tt.value, got, tt.want)
		}
	}
}

func TestATombstoneIsRefusedInEveryFormat(t *testing.T) {
	for _, format := range []string{"json", "csv", "raw"} {
		d, err := New(job.Source{Format: format, Columns: []job.Column{{Name: "v", Type: "text"}}}, []string{"v"})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if r := d.Append(&kgo.Record{}); r == nil || r.Reason != NoValue {
			t.Errorf("%s: got %v", format, r)
		}
	}
}

func TestRawWantsOneColumnThatTakesAnything(t *testing.T) {
	for _, columns := range [][]job.Column{
		{{Name: "a", Type: "text"}, {Name: "b", Type: "text"}},
		{{Name: "a", Type: "integer"}},
	} {
		if _, err := New(job.Source{Format: "raw", Columns: columns}, nil); err == nil {
			t.Errorf("%v is taken", columns)
		}
	}
}

// What encoding/csv writes is read as it was; what is taken, encoding/csv reads in the same way.
func FuzzCSVAgreesWithEncodingCSV(f *testing.F) {
	f.Add("a", "", "b,c", []byte("x,y,z\r\n"))
	f.Add(`"`, "\n", `""`, []byte("\"a\"\"b\",,\n"))
	f.Add("\\.", " ", "é", []byte(`"",a,`))
	f.Fuzz(func(t *testing.T, a, b, c string, value []byte) {
		types := []typed{{kind: kindText}, {kind: kindText}, {kind: kindText}}
		reader := newCSVReader(types, []string{"a", "b", "c"})
		var out bytes.Buffer
		w := csv.NewWriter(&out)
		if err := w.Write([]string{a, b, c}); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		in, spans, r := reader.read(out.Bytes())
		if r != nil && utf8.Valid(out.Bytes()) && bytes.IndexByte(out.Bytes(), 0) < 0 {
			t.Fatalf("%q is refused: %v", out.Bytes(), r)
		}
		if r == nil {
			for i, want := range []string{a, b, c} {
				if got := string(in[spans[i].from:spans[i].to]); got != want {
					t.Errorf("field %d of %q: %q, want %q", i, out.Bytes(), got, want)
				}
			}
		}
		if in, spans, r = reader.read(value); r != nil || bytes.Contains(value, []byte("\r")) { // encoding/csv drops carriage returns
			return
		}
		theirs := csv.NewReader(bytes.NewReader(value))
		row, err := theirs.Read()
		if err != nil || len(row) != 3 {
			t.Fatalf("%q is taken, and encoding/csv says %q, %v", value, row, err)
		}
		for i := range row {
			if got := string(in[spans[i].from:spans[i].to]); got != row[i] {
				t.Errorf("field %d of %q: %q, want %q", i, value, got, row[i])
			}
		}
	})
}
