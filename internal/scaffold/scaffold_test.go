package scaffold_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/scaffold"
)

// records are records of a topic; a value of "-" is a tombstone.
func records(values ...string) []*kgo.Record {
	out := make([]*kgo.Record, len(values))
	for i, v := range values {
		out[i] = &kgo.Record{
			Topic: "t", Offset: int64(i), Key: []byte("k"), Value: []byte(v),
			Timestamp: time.Date(2026, 1, 1, i%24, 0, 0, 0, time.UTC),
		}
		if v == "-" {
			out[i].Value = nil
		}
	}
	return out
}

// scaffolded writes a job file with a test. New has compiled it and run its test.
func scaffolded(t *testing.T, in []*kgo.Record, o scaffold.Options) scaffold.Draft {
	t.Helper()
	o.Job, o.Topic = "j", "t"
	d, err := scaffold.New(t.Context(), in, o)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := job.Parse("j.yaml", d.Text)
	if err != nil || len(spec.Tests) != 1 || len(spec.Tests[0].Expect) == 0 {
		t.Fatalf("%v\n%s", err, d.Text)
	}
	return d
}

func TestColumnsOfOddRecords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values []string
		want   []string // lines of the columns
	}{
		"nested": {
			[]string{`{"id":1,"customer":{"country":"DE","address":{"zip":"D-01067"}}}`, `{"id":2,"customer":{"country":"FR","address":null}}`},
			[]string{"id: bigint", "customer_country: {type: text, path: $.customer.country}", "customer_address_zip: {type: text, path: $.customer.address.zip}  # missing"},
		},
		"nulls": {[]string{`{"a":null,"b":1}`, `{"a":null}`}, []string{"a: jsonb  # null in every", "b: bigint  # missing or null in 50%"}},
		"lists and empty objects": {
			[]string{`{"a":[1,2],"b":{},"c":"x"}`, `{"a":[],"b":{},"c":"y"}`}, []string{"a: jsonb  # a list", "b: jsonb  # an object", "c: text"},
		},
		"mixed types": {
			[]string{`{"a":1,"b":{"c":1}}`, `{"a":"x","b":2}`}, []string{"a: jsonb  # of several types", "b: jsonb  # of several types"},
		},
		"huge numbers": {
			[]string{`{"a":9223372036854775808,"b":` + strings.Repeat("9", 60) + `,"c":1e400,"d":1e3,"e":0.1234567}`},
			[]string{"a: numeric(38,0)", "b: double precision", "c: jsonb", "d: double precision", "e: double precision"},
		},
		"money": {[]string{`{"amount":20.63}`, `{"amount":5}`}, []string{"amount: numeric(18,2)"}},
		"names": {
			[]string{`{"a.b":1,"it's":"x","order":"y","userId":"u","_id":"i","ID":1,"id":2,"":3,"größe":4,"2xx":5,"a b":6,"${X}":7,"source":8}`},
			[]string{
				"a_b: {type: bigint, field: a.b}", "it_s: {type: text, field: 'it''s'}", "order_: {type: text, field: order}",
				"user_id: {type: text, field: userId}", "id: {type: text, field: _id}", "id_2: {type: bigint, field: ID}",
				"id_3: {type: bigint, field: id}", "field: {type: bigint, path: '$['''']'}", "'größe': bigint",
				"c_2xx: {type: bigint, field: '2xx'}", "a_b_2: {type: bigint, field: a b}", "x: {type: bigint, field: '$${X}'}",
				"source_: {type: bigint, field: source}",
			},
		},
		"times": {
			[]string{
				`{"a":"2026-01-01T10:00:00Z","b":"2026-01-01 10:00:00","c":1767225600000,"created_at":1767225600000,"ts":1767225600,"day":"2026-01-01","at":"10:05","when":"Thu, 01 Jan 2026","mixed":"2026-01-01"}`,
				`{"a":"2026-01-01 10:00:00+02","b":"2026-01-01T10:00:00.123456789","c":1767225600001,"created_at":1767225600001,"ts":1767225601.5,"day":"2026-01-02","at":"10:06:07","when":"Fri, 02 Jan 2026","mixed":"2026-01-02T10:00:00+00:00"}`,
			},
			[]string{
				"a: timestamptz", "b: timestamptz", "c: bigint", "created_at: {type: timestamptz, unit: ms}", "ts: {type: timestamptz, unit: s}",
				"day: date", "at_: {type: time, field: at}", "when_: {type: text, field: when}", "mixed: timestamptz",
			},
		},
		"texts that look like others": {
			[]string{`{"md5":"d41d8cd98f00b204e9800998ecf8427e","uuid":"3f0c7f0e-62a4-4a2e-9d7b-0d9d7c1f2e11","n":"12.50","d":"20260101"}`},
			[]string{"md5: text", "uuid: uuid", "'n': text  # numbers written as text", "d: text  # numbers written as text"},
		},
		"a byte order mark":           {[]string{"\ufeff" + `{"a":true}`}, []string{"a: boolean"}},
		"a name twice in an object":   {[]string{`{"a":"x","a":1}`}, []string{"a: jsonb  # of several types"}},
		"spaces around the object":    {[]string{" {\n \"a\" : \"x\" } \n"}, []string{"a: text"}},
		"controls in names and texts": {[]string{`{"a\u0001":"x\u0002","b":"\u2028"}`}, []string{"a: {type: text, path: '$[''a\\u0001'']'}", "b: text"}},
		"a nested name in use":        {[]string{`{"a_b":1,"a":{"b":2}}`}, []string{"a_b: bigint", "a_b_2: {type: bigint, path: $.a.b}"}},
		"records of one list":         {[]string{`[{"a":1},{"a":2}]`, `[{"a":3}]`}, []string{"v: jsonb"}},
		"lines of text":               {[]string{"GET /index.html", "GET /favicon.ico"}, []string{"line: text"}},
		"texts as JSON":               {[]string{`"x"`, `"y"`}, []string{"v: jsonb"}},
		"an output's name in use":     {[]string{`{"hour":"a","records":1.5,"total_records":2}`}, []string{"hour: text", "records: numeric(18,1)", "total_records: bigint"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := string(scaffolded(t, records(c.values...), scaffold.Options{}).Text)
			_, columns, _ := strings.Cut(text, "  columns:\n")
			lines := strings.Split(columns, "\n")
			for i, want := range c.want {
				if !strings.HasPrefix(strings.TrimSpace(lines[i]), want) {
					t.Errorf("column %d: %s\nwant %s", i, lines[i], want)
				}
			}
			if !strings.HasPrefix(lines[len(c.want)], "  on_error") {
				t.Errorf("more columns: %s", lines[len(c.want)])
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

func TestTheFirstQuery(t *testing.T) {
	t.Parallel()
	var values []string
	for i := range 60 {
		values = append(values, fmt.Sprintf(`{"order_id":%d,"customer":"c%d","country":"%s","amount":%d.5,"placed_at":"2026-01-%02dT10:00:00Z"}`,
			i, i, []string{"DE", "FR"}[i%2], i, 1+i%20))
	}
	text := string(scaffolded(t, records(values...), scaffold.Options{View: "reports.orders"}).Text)
	for _, want := range []string{
		"SELECT country, date_trunc('day', placed_at) AS day, count(*) AS records, sum(amount) AS total_amount\n", "GROUP BY country, day\n",
		"view: reports.orders\n", "# yaml-language-server: $schema=", "{country: DE, day: '2026-01-01 00:00:00+00', records: 1, total_amount: 0.5}",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
}

func TestMaskedRecordsKeepTheirShape(t *testing.T) {
	t.Parallel()
	text := string(scaffolded(t, records(
		`{"name":"Ann Lee","mail":"ann@example.org","amount":-12.75,"at":"2026-01-01T10:00:00Z","uid":"3f0c7f0e-62a4-4a2e-9d7b-0d9d7c1f2e11","tags":{"ann":["lee",7,true,null]},"zip":"D-01067","e":1.5e3}`,
		`{"name":"Bob","mail":"bob@example.org","amount":3.10,"at":"2026-01-01T11:00:00Z","uid":"3f0c7f0e-62a4-4a2e-9d7b-0d9d7c1f2e12","tags":[],"zip":"","e":1}`,
	), scaffold.Options{Mask: true}).Text)
	for _, secret := range []string{"Ann", "ann", "Lee", "lee", "Bob", "bob", "example", "12.75", "01067", "3f0c"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in the file:\n%s", secret, text)
		}
	}
	if !strings.Contains(text, `"amount":-11.11,"at":"2026-01-01T10:00:00Z"`) {
		t.Error(text)
	}
}

func TestTombstonesAndDeadLettersAreNamed(t *testing.T) {
	t.Parallel()
	d := scaffolded(t, records(`{"a":"x"}`, "-", `{"a":"y"}`, "garbage"), scaffold.Options{})
	text := string(d.Text)
	if d.Tombstones != 1 || d.Rejected != 1 || !strings.Contains(text, "tombstones: skip") || !strings.Contains(text, "# 1 sampled record would become a dead letter: ") {
		t.Errorf("%+v\n%s", d, text)
	}
}

func TestManyFields(t *testing.T) {
	t.Parallel()
	var wide, deep, keyed []string
	for i := range 300 {
		wide = append(wide, fmt.Sprintf(`"f%d":%d`, i, i))
		keyed = append(keyed, fmt.Sprintf(`{"by_user":{"u%d":1}}`, i))
	}
	for range 20 {
		deep = append(deep, `{"x":`)
	}
	d := scaffolded(t, records("{"+strings.Join(wide, ",")+"}"), scaffold.Options{})
	if len(d.Columns) != 100 || !strings.Contains(string(d.Text), "# 200 more fields") {
		t.Errorf("%d columns\n%s", len(d.Columns), d.Text)
	}
	d = scaffolded(t, records(`{"nested":{`+strings.Join(wide, ",")+"}}"), scaffold.Options{})
	if len(d.Columns) != 1 || d.Columns[0].Type != "jsonb" {
		t.Errorf("%+v", d.Columns)
	}
	d = scaffolded(t, records(strings.Join(deep, "")+"1"+strings.Repeat("}", 20)), scaffold.Options{})
	if len(d.Columns) != 1 || d.Columns[0].Type != "jsonb" {
		t.Errorf("%+v", d.Columns)
	}
	d = scaffolded(t, records(keyed...), scaffold.Options{})
	if len(d.Columns) != 1 || d.Columns[0].Type != "jsonb" {
		t.Errorf("%+v", d.Columns)
	}
}

func TestWhatNoJobCanReadIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ value, says string }{
		"Avro":     {"\x00\x00\x00\x00\x07\x02abc", "schema registry header"},
		"Protobuf": {"\x00\x00\x00\x00\x07\x00\x0a\x03", "schema registry header"},
		"gzip":     {"\x1f\x8b\x08\x00\xff", "gzip"},
		"UTF-16":   {"\xff\xfe{\x00", "UTF-16"},
		"framed":   {"\x00\x00\x00\x00\x07{\"a\":1}", "JSON follows"},
	} {
		_, err := scaffold.New(t.Context(), records(c.value, c.value), scaffold.Options{Job: "j", Topic: "t"})
		var reject *format.Reject
		if !errors.As(err, &reject) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, empty := range [][]*kgo.Record{nil, records("-", "-")} {
		if _, err := scaffold.New(t.Context(), empty, scaffold.Options{Job: "j", Topic: "t"}); !errors.Is(err, scaffold.ErrNoRecords) {
			t.Errorf("%v", err)
		}
	}
}

func TestRowsOfCSV(t *testing.T) {
	t.Parallel()
	var rows []string
	for i := range 40 {
		rows = append(rows, fmt.Sprintf(`%d,%s,"Lee, Ann %d",%d.25,2026-01-01T%02d:00:00Z,,0%d`, i, []string{"DE", "FR"}[i%2], i, i, i%20, i))
	}
	for name, c := range map[string]struct {
		values []string
		want   string
	}{
		"without names": {rows, "    c1: bigint\n    c2: text\n    c3: text\n    c4: numeric(18,2)\n    c5: timestamptz\n    c6: text  # null in every sampled record\n    c7: text"},
		"with names in the first row": {
			append([]string{"id,country,full name,amount,placed_at,note,order"}, rows...),
			"    id: bigint\n    country: text\n    full_name: text\n    amount: numeric(18,2)\n    placed_at: timestamptz\n    note: text",
		},
		"two fields":           {[]string{"a,1", "b,2", "b,3"}, "    c1: text\n    c2: bigint\n"},
		"a column of anything": {[]string{"a,1", "b,x", "b,true"}, "    c1: text\n    c2: text\n"},
	} {
		for _, mask := range []bool{false, true} {
			d := scaffolded(t, records(c.values...), scaffold.Options{Mask: mask})
			text := string(d.Text)
			if d.Format != "csv" || !strings.Contains(text, c.want) || mask && strings.Contains(text, "Ann") {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
	for name, values := range map[string][]string{
		"prose":             {"Hello, world", "Bye, world"},
		"lines of any size": {"a,b", "a,b,c", "a", "a,b,c,d"},
		"a quote inside":    {`a "b",c`, `d "e",f`},
	} {
		if d := scaffolded(t, records(values...), scaffold.Options{}); d.Format != "raw" {
			t.Errorf("%s: %s", name, d.Text)
		}
	}
}

func TestChangesOfRows(t *testing.T) {
	t.Parallel()
	var inserts, all []string
	change := `{"before":%s,"after":%s,"source":{"table":"orders","lsn":%d},"op":"%s","ts_ms":%d}`
	state := func(i int) string {
		return fmt.Sprintf(`{"id":%d,"status":"%s","amount":%d.5}`, i, []string{"open", "paid"}[i%2], i)
	}
	for i := range 40 {
		inserts = append(inserts, fmt.Sprintf(change, "null", state(i), i, "c", 1767225600000+int64(i)))
	}
	all = append(append(all, inserts...), fmt.Sprintf(change, state(1), state(2), 90, "u", 1767225700000), fmt.Sprintf(change, state(3), "null", 91, "d", 1767225800000), "-")
	var wrapped []string
	for _, r := range all {
		if r != "-" {
			r = `{"schema":{"type":"struct"},"payload":` + r + `}`
		}
		wrapped = append(wrapped, r)
	}
	for name, values := range map[string][]string{"new rows alone": inserts, "all kinds": all, "with a schema": wrapped} {
		text := string(scaffolded(t, records(values...), scaffold.Options{}).Text)
		for _, want := range []string{
			"'n': -1, 'x': -", "SELECT entry.k AS status, sum(entry.n) AS records, sum(entry.x) AS total_amount", "tombstones: skip",
			"before_amount: {type: 'numeric(18,1)'", "after_amount: {type: 'numeric(18,1)'", "WHERE entry.k IS NOT NULL", "view: public.j_totals",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, text)
			}
		}
	}
	text := string(scaffolded(t, records(`{"op":"add","before":1,"after":2,"source":"x"}`, `{"op":"sub","before":3,"after":2,"source":"y"}`), scaffold.Options{}).Text)
	if strings.Contains(text, "entry") {
		t.Error(text)
	}
}
