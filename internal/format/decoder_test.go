package format

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// one is a decoder of a source with one column v.
func one(t *testing.T, c job.Column, fields ...string) *Decoder {
	t.Helper()
	c.Name = "v"
	typ, err := job.ParseType(c.Type)
	if err != nil {
		t.Fatalf("type %s: %v", c.Type, err)
	}
	c.Type = typ
	if fields == nil {
		fields = []string{"v"}
	}
	d, err := New(job.Source{Format: "json", Columns: []job.Column{c}}, fields)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// rows gives the batch under construction as JSON, one string a record.
func rows(t *testing.T, d *Decoder) []string {
	t.Helper()
	batch := d.Take()
	defer batch.Release()
	text, err := batch.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var all []struct{ R json.RawMessage }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	out := make([]string, len(all))
	for i, r := range all {
		out[i] = string(r.R)
	}
	return out
}

// decode gives the JSON of v after its way through a column, or the reason of its refusal.
func decode(t *testing.T, c job.Column, value string) string {
	t.Helper()
	d := one(t, c)
	if r := d.Append(&kgo.Record{Value: []byte(`{"v":` + value + `}`)}); r != nil {
		return r.Reason
	}
	var row map[string]json.RawMessage
	if err := json.Unmarshal([]byte(rows(t, d)[0]), &row); err != nil {
		t.Fatal(err)
	}
	return string(row["v"])
}

func TestWholeValueIsJudged(t *testing.T) {
	table := []struct{ value, want string }{
		{`{"v":1}`, ``},
		{" \t\r\n{ \"v\" : 1 , \"w\" : [ ] } \n", ``},
		{`{}`, ``},
		{`{"w":{"v":"x"}}`, ``},
		{``, NotJSON},
		{`   `, NotJSON},
		{`{"v":1}x`, NotJSON},
		{`{"v":1}{"v":2}`, NotJSON},
		{`{"v":1,}`, NotJSON},
		{`{,"v":1}`, NotJSON},
		{`{"v" 1}`, NotJSON},
		{`{"v":}`, NotJSON},
		{`{v:1}`, NotJSON},
		{`{"v":1`, NotJSON},
		{`{"v":01}`, NotJSON},
		{`{"v":1.}`, NotJSON},
		{`{"v":.5}`, NotJSON},
		{`{"v":+1}`, NotJSON},
		{`{"v":1e}`, NotJSON},
		{`{"v":-}`, NotJSON},
		{`{"v":1,"w":NaN}`, NotJSON}, // D06
		{`{"v":1,"w":1e400}`, ``},
		{`{"v":1,"w":[1,2}`, NotJSON},
		{`{"v":1,"w":"\x"}`, NotJSON},
		{`{"v":1,"w":"\u12g4"}`, NotJSON},
		{`{"v":1,"w":tru}`, NotJSON},
		{"{\"v\":1,\"w\":\"a\nb\"}", NotJSON},
		{"{\"v\":1,\"w\":\"a\xffb\"}", InvalidUTF8}, // D03
		{"{\"v\":1,\"\xff\":2}", InvalidUTF8},
		{"{\"v\":1,\"w\":\"\xed\xa0\x80\"}", InvalidUTF8},
		{"{\"v\":1,\xff:2}", NotJSON},
		{`[1]`, WrongType},
		{`null`, WrongType},
		{`"x"`, WrongType},
		{`{"v":1,"w":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, NotJSON},
		{`{"v":1,"w":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, ``},
	}
	for _, c := range table {
		t.Run(strings.ToValidUTF8(c.value[:min(len(c.value), 40)], "?"), func(t *testing.T) {
			got := ""
			if r := one(t, job.Column{Type: "bigint"}).Append(&kgo.Record{Value: []byte(c.value)}); r != nil {
				got = r.Reason
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// D07: the last of duplicate names wins, names match exactly, and only the value that wins is judged.
func TestNamesMatchExactlyAndTheLastWins(t *testing.T) {
	d := one(t, job.Column{Type: "bigint"})
	for _, v := range []string{
		`{"v":1,"v":2,"V":3}`, `{"v":"x","v":2}`, `{"V":3}`, `{"v":1,"\u0076":2}`, `{"v ":1,"vv":2,"":3,"v":4}`, `{"v":1,"v":null}`,
	} {
		if r := d.Append(&kgo.Record{Value: []byte(v)}); r != nil {
			t.Errorf("%s: %v", v, r)
		}
	}
	want := []string{`{"v":2}`, `{"v":2}`, `{"v":null}`, `{"v":2}`, `{"v":4}`, `{"v":null}`}
	if diff := cmp.Diff(want, rows(t, d)); diff != "" {
		t.Error(diff)
	}
	if r := d.Append(&kgo.Record{Value: []byte(`{"v":1,"v":"x"}`)}); r == nil || r.Reason != WrongType || r.Column != "v" {
		t.Errorf("a bad value that wins: %v", r)
	}
}

// Records of changing shape: what was learned from one must not be applied to another.
func TestFieldOrderMayChangeFromRecordToRecord(t *testing.T) {
	src := job.Source{Format: "json", Columns: []job.Column{{Name: "a", Type: "bigint"}, {Name: "b", Type: "text"}, {Name: "c", Type: "boolean"}}}
	d, err := New(src, []string{"c", "a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{
		`{"a":1,"b":"x","c":true}`, `{"c":false,"b":"y","a":2}`, `{"b":"z"}`, `{"x":0,"a":3,"ab":1,"c":true}`, `{}`, `{"a":4,"b":"w","c":false}`,
	} {
		if r := d.Append(&kgo.Record{Value: []byte(v)}); r != nil {
			t.Fatalf("%s: %v", v, r)
		}
	}
	want := []string{
		`{"a":1,"b":"x","c":true}`, `{"a":2,"b":"y","c":false}`, `{"a":null,"b":"z","c":null}`, `{"a":3,"b":null,"c":true}`,
		`{"a":null,"b":null,"c":null}`, `{"a":4,"b":"w","c":false}`,
	}
	if diff := cmp.Diff(want, sorted(t, rows(t, d))); diff != "" {
		t.Error(diff)
	}
}

// sorted writes each row with its fields in the order of their names.
func sorted(t *testing.T, in []string) []string {
	t.Helper()
	out := make([]string, len(in))
	for i, s := range in {
		var m map[string]any
		if err := json.Unmarshal([]byte(s), &m); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = string(b)
	}
	return out
}

// Columns that the query does not read are judged all the same, and a refused record leaves nothing in the batch.
func TestRefusedRecordLeavesTheBatchAsItWas(t *testing.T) {
	src := job.Source{Format: "json", Columns: []job.Column{{Name: "a", Type: "text"}, {Name: "b", Type: "bigint"}, {Name: "unread", Type: "date"}}}
	d, err := New(src, []string{"a", "b", "_offset"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{}
	for i := range 3000 {
		good := fmt.Sprintf(`{"a":"value %d","b":%d,"unread":"2026-01-01"}`, i, i)
		if i%3 == 0 {
			good = `{"unread":null}`
			want = append(want, fmt.Sprintf(`{"_offset":%d,"a":null,"b":null}`, i))
		} else {
			want = append(want, fmt.Sprintf(`{"_offset":%d,"a":"value %d","b":%d}`, i, i, i))
		}
		if r := d.Append(&kgo.Record{Offset: int64(i), Value: []byte(good)}); r != nil {
			t.Fatal(r)
		}
		for _, bad := range []string{
			`{"a":"half a row","b":"x"}`, `{"a":"half a row","b":1,"unread":"never"}`, `{"a":"half a row","b":1`, `{"a":"x\u0000","b":1}`,
		} {
			if r := d.Append(&kgo.Record{Value: []byte(bad)}); r == nil {
				t.Fatalf("taken: %s", bad)
			}
		}
		if d.Len() != i+1 {
			t.Fatalf("%d records in the batch, want %d", d.Len(), i+1)
		}
	}
	if d.Size() == 0 {
		t.Error("no size")
	}
	if diff := cmp.Diff(want, sorted(t, rows(t, d))); diff != "" {
		t.Error(diff)
	}
	if d.Len() != 0 || len(rows(t, d)) != 0 {
		t.Error("the batch was not emptied")
	}
}

func TestBatchesAfterTakeAreIndependent(t *testing.T) {
	d := one(t, job.Column{Type: "text"})
	add := func(v string) {
		t.Helper()
		if r := d.Append(&kgo.Record{Value: []byte(v)}); r != nil {
			t.Fatal(r)
		}
	}
	add(`{"v":"first"}`)
	first := d.Take()
	defer first.Release()
	add(`{"v":"other"}`)
	add(`{}`)
	text, err := first.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(text)); !strings.Contains(got, `"first"`) {
		t.Errorf("the first batch changed: %s", got)
	}
	if diff := cmp.Diff([]string{`{"v":"other"}`, `{"v":null}`}, rows(t, d)); diff != "" {
		t.Error(diff)
	}
}

// A tombstone is a dead letter: as a row of NULLs it would be counted.
func TestTombstoneIsRefused(t *testing.T) {
	d := one(t, job.Column{Type: "text"})
	if r := d.Append(&kgo.Record{}); r == nil || r.Reason != NoValue {
		t.Errorf("got %v", r)
	}
	if r := d.Append(&kgo.Record{Value: []byte{}}); r == nil || r.Reason != NotJSON {
		t.Errorf("an empty value: %v", r)
	}
}

// D15, D16: what is around the value.
func TestMetaColumns(t *testing.T) {
	d := one(t, job.Column{Type: "bigint"}, MetaColumns()...)
	records := []*kgo.Record{
		{Topic: "t", Partition: 3, Offset: 7, Timestamp: time.UnixMilli(1_700_000_000_123), Key: []byte{0xFF}, Headers: []kgo.RecordHeader{
			{Key: "h", Value: nil}, {Key: "h", Value: []byte{}}, {Key: "h", Value: []byte("a")}, {Key: "x", Value: []byte{0xFE}},
		}},
		{Topic: "t", Partition: 3, Offset: 8, Timestamp: time.UnixMilli(-1)},
		{Topic: "t", Partition: 3, Offset: 9, Timestamp: time.UnixMilli(0), Key: []byte{}},
		{Topic: "t", Partition: 3, Offset: 10, Timestamp: time.UnixMilli(1_700_000_000)},
	}
	for _, r := range records {
		r.Value = []byte(`{"v":1}`)
		if bad := d.Append(r); bad != nil {
			t.Fatal(bad)
		}
	}
	got := sorted(t, rows(t, d))
	want := []string{
		`{"_headers":[{"key":"h","value":null},{"key":"h","value":""},{"key":"h","value":"YQ=="},{"key":"x","value":"/g=="}],"_key":"/w==","_offset":7,"_partition":3,"_timestamp":"2023-11-14T22:13:20.123Z","_topic":"t"}`,
		`{"_headers":[],"_key":null,"_offset":8,"_partition":3,"_timestamp":null,"_topic":"t"}`,
		`{"_headers":[],"_key":"","_offset":9,"_partition":3,"_timestamp":"1970-01-01T00:00:00Z","_topic":"t"}`,
		`{"_headers":[],"_key":null,"_offset":10,"_partition":3,"_timestamp":"1970-01-20T16:13:20Z","_topic":"t"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		rec    kgo.Record
		reason string
		column string
	}{
		{kgo.Record{Timestamp: time.UnixMilli(1_700_000_000_000_000)}, OutOfRange, "_timestamp"},
		{kgo.Record{Headers: []kgo.RecordHeader{{Key: "\xff"}}}, InvalidUTF8, "_headers"},
		{kgo.Record{Headers: []kgo.RecordHeader{{Key: "a\x00"}}}, NUL, "_headers"},
	} {
		c.rec.Value = []byte(`{"v":1}`)
		if r := one(t, job.Column{Type: "bigint"}).Append(&c.rec); r == nil || r.Reason != c.reason || r.Column != c.column {
			t.Errorf("%+v: %v", c.rec, r)
		}
	}
}

func TestNewRefusesWhatItDoesNotKnow(t *testing.T) {
	v := []job.Column{{Name: "v", Type: "bigint"}}
	for _, c := range []struct {
		src    job.Source
		fields []string
	}{
		{job.Source{Format: "avro", Columns: v}, []string{"v"}},
		{job.Source{Format: "json", Columns: v}, []string{"w"}},
		{job.Source{Format: "json", Columns: []job.Column{{Name: "v", Type: "point"}}}, []string{"v"}},
		{job.Source{Format: "json", Columns: []job.Column{{Name: "v", Type: "timestamp with time zone", Unit: "h"}}}, []string{"v"}},
	} {
		if _, err := New(c.src, c.fields); err == nil {
			t.Errorf("taken: %+v %v", c.src, c.fields)
		}
	}
	d, err := New(job.Source{Format: "json", Columns: v}, nil)
	if err != nil || d.Append(&kgo.Record{Offset: 5, Value: []byte(`{}`)}) != nil {
		t.Fatalf("no fields: %v", err)
	}
	if diff := cmp.Diff([]string{`{"_offset":5}`}, rows(t, d)); diff != "" {
		t.Error(diff)
	}
}

func TestRejectSaysColumnAndReason(t *testing.T) {
	r := one(t, job.Column{Type: "bigint"}).Append(&kgo.Record{Value: []byte(`{"v":"abc"}`)})
	if want := `wrong_type: column v: want a number, got the string "abc"; fix: ` +
		`declare the column as text and cast it in the query: CAST(v AS BIGINT)`; r == nil || r.Error() != want {
		t.Errorf("got %v, want %s", r, want)
	}
	long := one(t, job.Column{Type: "bigint"}).Append(&kgo.Record{Value: []byte(`{"v":"` + strings.Repeat("x", 5000) + `"}`)})
	if long == nil || len(long.Error()) > 200 {
		t.Errorf("detail holds the whole value: %v", long)
	}
}

// Reaches is asked after each record, and agrees with Size.
func TestReachesAgreesWithSize(t *testing.T) {
	t.Parallel()
	d, err := New(job.Source{Format: "json", Columns: []job.Column{{Name: "a", Type: "text"}, {Name: "b", Type: "text", Path: "$.a"}}},
		[]string{"a", "b", "_topic", "_key", "_headers"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		text := strings.Repeat("x", i*7%200)
		rec := &kgo.Record{
			Topic: strings.Repeat("t", 249), Key: []byte(text), Value: []byte(`{"a":"` + text + `"}`),
			Headers: []kgo.RecordHeader{{Key: "h", Value: []byte(text + text)}, {Key: text}},
		}
		if r := d.Append(rec); r != nil {
			t.Fatal(r)
		}
		if got, want := d.Reaches(100_000), d.Size() >= 100_000; got != want {
			t.Fatalf("record %d: %d bytes, reaches %v", i, d.Size(), got)
		}
		if d.Reaches(100_000) {
			d.Take().Release()
		}
	}
}
