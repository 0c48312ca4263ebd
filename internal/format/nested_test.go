package format

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// nested is a decoder of JSON records for columns written as name, type and path; a path may be empty.
func nested(t testing.TB, columns ...[3]string) *Decoder {
	t.Helper()
	src := job.Source{Format: "json"}
	var names []string
	for _, c := range columns {
		typ, err := job.ParseType(c[1])
		if err != nil {
			t.Fatal(err)
		}
		src.Columns = append(src.Columns, job.Column{Name: c[0], Type: typ, Path: c[2]})
		names = append(names, c[0])
	}
	d, err := New(src, names)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// taken is the row of a record as JSON, or the text of its refusal without the fix.
func taken(t testing.TB, d *Decoder, value string) string {
	t.Helper()
	if r := d.Append(&kgo.Record{Value: []byte(value)}); r != nil {
		text, _, _ := strings.Cut(r.Error(), "; fix: ")
		return text
	}
	batch := d.Take()
	defer batch.Release()
	text, err := batch.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var all []struct{ R json.RawMessage }
	if err := json.Unmarshal(text, &all); err != nil || len(all) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	return string(all[0].R)
}

func TestNestedValuesAreTakenFromTheirPlaces(t *testing.T) {
	d := nested(t, [3]string{"a", "numeric(38,20)", "$.p.a"}, [3]string{"id", "text", "$._id"}, [3]string{"p", "jsonb", ""},
		[3]string{"x", "bigint", "$.l[1].x"}, [3]string{"again", "text", "$._id"})
	for _, c := range []struct{ value, want string }{
		{
			`{"_id":"k","p":{"b":1,"a":123456789012345678.1234567890123456789,"a2":{"a":3}},"l":[{"x":1},{"y":[],"x":2},{"x":3}]}`,
			`{"a":"123456789012345678.1234567890123456789","again":"k","id":"k",` +
				`"p":"{\"b\":1,\"a\":123456789012345678.1234567890123456789,\"a2\":{\"a\":3}}","x":2}`,
		},
		{` { "l" : [ 1 , { "x" : 5 } ] , "p" : {"a" : 1.5 } } `, `{"a":"1.5","again":null,"id":null,"p":"{\"a\" : 1.5 }","x":5}`},
		{`{"p":null,"l":null}`, `{"a":null,"again":null,"id":null,"p":null,"x":null}`},
		{`{"p":{},"l":[]}`, `{"a":null,"again":null,"id":null,"p":"{}","x":null}`},
		{`{"p":{"a":null},"l":[null,null]}`, `{"a":null,"again":null,"id":null,"p":"{\"a\":null}","x":null}`},
		{`{"p":{"\u0061":7}}`, `{"a":"7","again":null,"id":null,"p":"{\"\\u0061\":7}","x":null}`},
	} {
		if got := taken(t, d, c.value); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.value, got, c.want)
		}
	}
}

// A nested value is exact to the digit, which a double would not be.
func TestNestedNumbersKeepEveryDigit(t *testing.T) {
	d := nested(t, [3]string{"a", "numeric(38,18)", "$.p.q.a"}, [3]string{"n", "bigint", "$.p.n"})
	got := taken(t, d, `{"p":{"n":9007199254740993,"q":{"a":1234567890123456.780100000000000001}}}`)
	for _, want := range []string{"9007199254740993", "1234567890123456.780100000000000001"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

func TestOfARepeatedNameTheLastCountsAsAWhole(t *testing.T) {
	d := nested(t, [3]string{"a", "bigint", "$.p.a"}, [3]string{"b", "bigint", "$.p.b"})
	for value, want := range map[string]string{
		`{"p":{"a":1,"a":2}}`:              `{"a":2,"b":null}`,
		`{"p":{"a":1},"p":{"b":2}}`:        `{"a":null,"b":2}`,
		`{"p":{"a":1},"p":null}`:           `{"a":null,"b":null}`,
		`{"p":"x","p":{"a":1}}`:            `{"a":1,"b":null}`,
		`{"p":{"a":1},"p":"x"}`:            `wrong_type: column a: want an object at $.p, got the string "x"`,
		`{"p":{"a":{"x":1},"a":3,"b":4}}`:  `{"a":3,"b":4}`,
		`{"p":{"a":1,"\u0061":2,"b":"x"}}`: `wrong_type: column b: want a number, got the string "x"`,
	} {
		if got := taken(t, d, value); got != want {
			t.Errorf("%s:\n got %s\nwant %s", value, got, want)
		}
	}
}

func TestAValueThatCannotHoldThePlaceIsRefused(t *testing.T) {
	d := nested(t, [3]string{"a", "bigint", "$.p.a"}, [3]string{"x", "bigint", "$.l[0]"})
	for value, want := range map[string]string{
		`{"p":[{"a":1}]}`: `wrong_type: column a: want an object at $.p, got an array`,
		`{"p":5}`:         `wrong_type: column a: want an object at $.p, got the number 5`,
		`{"p":true}`:      `wrong_type: column a: want an object at $.p, got true`,
		`{"l":{"0":1}}`:   `wrong_type: column x: want an array at $.l, got an object`,
		`{"p":{"a":1}`:    `not_json: the value ends early at byte 12: neither comma nor brace after a field`,
		`{"p":5,"q":}`:    `not_json: no JSON value at byte 11: "}"`,
		`{"l":[1 2]}`:     `not_json: neither comma nor end after a value at byte 8: "2]}"`,
	} {
		if got := taken(t, d, value); got != want {
			t.Errorf("%s:\n got %s\nwant %s", value, got, want)
		}
	}
}

// The deepest value that is taken is as deep below a declared place as elsewhere.
func TestDepthIsBoundedBelowDeclaredPlacesToo(t *testing.T) {
	d := nested(t, [3]string{"a", "jsonb", "$.p.a"})
	for depth, refused := range map[int]bool{maxDepth - 2: false, maxDepth - 1: true} {
		value := `{"p":{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}}`
		if got := taken(t, d, value); strings.HasPrefix(got, NotJSON) != refused {
			t.Errorf("%d arrays below two objects: %.80s", depth, got)
		}
	}
}

func TestRepeatedNamesInJSONColumnsKeepTheLastMember(t *testing.T) {
	for _, typ := range []string{"json", "jsonb"} {
		d := nested(t, [3]string{"p", typ, ""})
		for value, want := range map[string]string{
			`{"a":1,"a":2}`:                          `{"a":2}`,
			`{ "a" : 1 , "b" : 2 , "a" : 3 }`:        `{"b":2,"a":3}`,
			`[{"a":1,"a":{"b":1,"b":2}}]`:            `[{"a":{"b":2}}]`,
			`{"a":{"b":1,"b":2},"a":1,"c":[1, 2]}`:   `{"a":1,"c":[1,2]}`,
			`{"a":1,"\u0061":2}`:                     `{"\u0061":2}`,
			`{"a":{"x":1},"b":{"x":1},"c":["x"]}`:    `{"a":{"x":1},"b":{"x":1},"c":["x"]}`,
			`{"a":"a","b":["a","a",{}],"c":"a:"}`:    `{"a":"a","b":["a","a",{}],"c":"a:"}`,
			`{"":1,"":2,"n":1.50,"t":true,"u":null}`: `{"":2,"n":1.50,"t":true,"u":null}`,
		} {
			if r := d.Append(&kgo.Record{Value: []byte(`{"p":` + value + `}`)}); r != nil {
				t.Errorf("%s: %v", value, r)
				continue
			}
			if got := string(d.fields[0].data); got != want {
				t.Errorf("%s: %s, want %s", value, got, want)
			}
			d.Take().Release()
		}
	}
}

func TestManyNamesInOneObjectAreComparedToo(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"first":0`)
	for i := range 5000 {
		b.WriteString(`,"` + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("0", i/26) + `":1`)
	}
	d := nested(t, [3]string{"p", "jsonb", ""})
	for text, want := range map[string]string{
		b.String() + `}`:           b.String() + `}`,
		b.String() + `,"first":2}`: strings.Replace(b.String(), `"first":0,`, "", 1) + `,"first":2}`,
	} {
		if r := d.Append(&kgo.Record{Value: []byte(`{"p":` + text + `}`)}); r != nil {
			t.Fatal(r)
		}
		if got := string(d.fields[0].data); got != want {
			t.Errorf("%d bytes, want %d", len(got), len(want))
		}
		d.Take().Release()
	}
}

// Nested places and encoding/json agree, whatever the record is.
func FuzzNestedAgreesWithEncodingJSON(f *testing.F) {
	for _, s := range []string{
		`{"p":{"v":1,"q":{"w":[]}}}`, `{"p":{"v":1},"p":{"q":{}}}`, `{"p":{"v":"\ud800"},"l":[0,{"v":2}]}`, `{"p":[],"l":{}}`, `{"l":[1,[2]],"l":null}`,
	} {
		f.Add([]byte(s))
	}
	columns := [][3]string{{"v", "jsonb", "$.p.v"}, {"w", "jsonb", "$.p.q.w"}, {"x", "jsonb", "$.l[1].v"}, {"p", "jsonb", ""}}
	f.Fuzz(func(t *testing.T, value []byte) {
		d := nested(t, columns...)
		if r := d.Append(&kgo.Record{Value: value}); r != nil {
			return
		}
		var top map[string]json.RawMessage
		if err := json.Unmarshal(value, &top); err != nil {
			t.Fatalf("taken: %q", value)
		}
		want := []json.RawMessage{
			member(top["p"], "v"), member(member(top["p"], "q"), "w"), member(element(top["l"], 1), "v"), top["p"],
		}
		for i, cell := range d.cells {
			null := len(want[i]) == 0 || string(want[i]) == "null"
			if null != cell.null || !null && !sameJSON(cell.b, want[i]) {
				t.Errorf("%q: column %s is %s, want %s", value, columns[i][0], cell.b, want[i])
			}
		}
	})
}

func member(text json.RawMessage, name string) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(text, &m) != nil {
		return nil
	}
	return m[name]
}

func element(text json.RawMessage, n int) json.RawMessage {
	var l []json.RawMessage
	if json.Unmarshal(text, &l) != nil || n >= len(l) {
		return nil
	}
	return l[n]
}

// sameJSON compares two texts without white space and with the last of each name, as encoding/json reads them.
func sameJSON(a, b []byte) bool {
	var texts [2]string
	for i, text := range [][]byte{a, b} {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var v any
		if decoder.Decode(&v) != nil {
			return false
		}
		out, err := json.Marshal(v)
		if err != nil {
			return false
		}
		texts[i] = string(out)
	}
	return texts[0] == texts[1]
}

func TestPathsBelongToColumnsOfJSON(t *testing.T) {
	if _, err := New(job.Source{Format: "json", Columns: []job.Column{{Name: "a", Type: "text", Path: "$.a[*]"}}}, nil); err == nil {
		t.Error("a path to several values is taken")
	}
}
