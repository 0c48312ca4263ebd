package format

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// refusal is why a record is refused, as a dead letter shows it.
func refusal(t *testing.T, src job.Source, value string) string {
	t.Helper()
	d, err := New(src, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := d.Append(&kgo.Record{Value: []byte(value)})
	if r == nil {
		return ""
	}
	return r.Error()
}

func TestARefusalNamesTheColumnAndWhatToChange(t *testing.T) {
	for _, c := range []struct{ name, typ, unit, path, value, want string }{
		{
			"Title", "text", "", "", `{"Title":1776}`,
			`column Title: want a string, got the number 1776; fix: declare the column as jsonb and take its text in the query: ("Title"->>'$')`,
		},
		{"t", "text", "", "", `{"t":{"a":1}}`, `column t: want a string, got an object; fix: declare the column as jsonb, or a field inside it with path`},
		{"n", "integer", "", "", `{"n":"7"}`, `got the string "7"; fix: declare the column as text and cast it in the query: CAST(n AS BIGINT)`},
		{"n", "numeric(10,2)", "", "", `{"n":"7"}`, `CAST(n AS DECIMAL(10,2))`},
		{"n", "bigint", "", "", `{"n":1.5}`, `fix: declare the column as numeric(p,s) or double precision if it is not a whole number`},
		{"n", "integer", "", "", `{"n":3000000000}`, `3000000000" is out of range; fix: declare the column as bigint`},
		{"n", "bigint", "", "", `{"n":1e30}`, `fix: declare the column as numeric(38,0)`},
		{"n", "numeric(4,2)", "", "", `{"n":1.234}`, `fix: declare the column with more digits`},
		{"b", "boolean", "", "", `{"b":"yes"}`, `fix: declare the column as text and cast it in the query: CAST(b AS BOOLEAN)`},
		{"at", "timestamp with time zone", "", "", `{"at":1767225600}`, `fix: give the column the number's unit: s, ms, us or ns`},
		{"at", "timestamp with time zone", "ms", "", `{"at":"2026-01-01"}`, `fix: remove the column's unit`},
		{"at", "timestamp with time zone", "s", "", `{"at":1767225600000}`, `fix: correct the column's unit`},
		{"at", "timestamp with time zone", "", "", `{"at":"1 May"}`, `fix: if such values are expected, declare the column as text and convert at in the query`},
		{"d", "date", "", "", `{"d":20454}`, `fix: declare the column as integer; days since 1970 become a date by DATE '1970-01-01' + d`},
		{"x", "bytea", "", "", `{"x":"\\x62"}`, `is not base64; fix: if such values are expected, declare the column as text`},
		{"a", "bigint", "", "$.p.a", `{"p":"{\"a\":1}"}`, `column a: want an object at $.p, got the string "{\\\"a\\\":1}"; fix: the string holds JSON: declare $.p as a column of type text`},
		{"a", "bigint", "", "$.p.a", `{"p":[1]}`, `want an object at $.p, got an array; fix: declare $.p as a column of type jsonb`},
	} {
		src := job.Source{Format: "json", Columns: []job.Column{{Name: c.name, Type: c.typ, Unit: c.unit, Path: c.path}}}
		if got := refusal(t, src, c.value); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s\nwant %s", c.value, got, c.want)
		}
	}
}

func TestARefusalNamesTheFramingThatWasFound(t *testing.T) {
	object := job.Source{Format: "json", Columns: []job.Column{{Name: "a", Type: "bigint"}}}
	row := job.Source{Format: "csv", Columns: []job.Column{{Name: "a", Type: "bigint"}, {Name: "b", Type: "text"}}}
	raw := job.Source{Format: "raw", Columns: []job.Column{{Name: "v", Type: "jsonb"}}}
	for _, c := range []struct {
		src         job.Source
		value, want string
	}{
		{object, "\x00\x00\x00\x00\x07{\"a\":1}", "not_json: the value begins with a schema registry header (0x00 and schema id 7), JSON follows; fix: "},
		{object, "\x00\x00\x00\x01\x00\x02\x0aabc", "schema registry header (0x00 and schema id 256): it is Avro or Protobuf; fix: "},
		{raw, "\x00\x00\x00\x00\x07{}", "column v: the value begins with a schema registry header"},
		{row, "\x00\x00\x00\x00\x07\xff\xfe", "invalid_utf8: the value begins with a schema registry header"},
		{object, "\xff\xfe{\x00}\x00", "a byte order mark of UTF-16; fix: let the producer write UTF-8"},
		{object, "\x1f\x8b\x08\x00", "compressed with gzip; fix: "},
		{object, `[{"a":1}]`, `wrong_type: the value is an array, not an object; fix: use format raw with a column of type jsonb, v, and unnest(json_extract(v, '$[*]'))`},
		{object, `[]`, `the value is an array, not an object; fix: `},
		{object, `"{\"a\":1}"`, `the value is the string "{\\\"a\\\":1}", not an object; fix: the string holds JSON: use format raw`},
		{object, `5`, `the value is the number 5, not an object; fix: use format raw with a column of type jsonb`},
		{object, "{\"a\":1}\n{\"a\":2}\n", `not_json: another value follows the value at byte 8: "{\"a\":2}\n"; fix: let the producer write one value in a record`},
		{object, `{"a":1} x`, `not_json: something follows the value at byte 8: "x"`},
	} {
		if got := refusal(t, c.src, c.value); !strings.Contains(got, c.want) {
			t.Errorf("%q: %s\nwant %s", c.value, got, c.want)
		}
	}
}

// A byte order mark in front of a value is no part of it. Inside, and in raw texts, it is a character like others.
func TestAByteOrderMarkInFrontOfAValueIsSkipped(t *testing.T) {
	column := job.Column{Name: "a", Type: "text"}
	for _, c := range []struct{ format, typ, value, want string }{
		{"json", "text", "\ufeff{\"a\":\"x\"}", "x"},
		{"json", "text", "{\"a\":\"\ufeffx\"}", "\ufeffx"},
		{"csv", "text", "\ufeffx", "x"},
		{"csv", "text", "\ufeff\"x\"\r\n", "x"},
		{"raw", "jsonb", "\ufeff[1]", "[1]"},
		{"raw", "text", "\ufeffx", "\ufeffx"},
	} {
		column.Type = c.typ
		d, err := New(job.Source{Format: c.format, Columns: []job.Column{column}}, []string{"a"})
		if err != nil {
			t.Fatal(err)
		}
		if r := d.Append(&kgo.Record{Value: []byte(c.value)}); r != nil {
			t.Errorf("%s %q: %v", c.format, c.value, r)
		} else if got := string(d.fields[0].data); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.format, c.value, got, c.want)
		}
		d.Close()
	}
	d := nested(t, [3]string{"a", "bigint", ""})
	if got := taken(t, d, "\ufeff\ufeff{}"); !strings.HasPrefix(got, NotJSON) {
		t.Errorf("two marks: %s", got)
	}
}
