package typed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
)

var partition = job.Partition{Topic: "orders", TopicID: job.TopicID{1}, ID: 7}

// kinds are values for each type of a column, some of them not of it.
var kinds = map[string][]string{
	"boolean":                     {"true", "false"},
	"smallint":                    {"0", "-32768", "32767", "40000"},
	"integer":                     {"0", "-2147483648", "2147483647"},
	"bigint":                      {"9007199254740993", "-1", "0"},
	"real":                        {"1.5", "-0.0"},
	"double precision":            {"1.5", "1e308", "-2.25"},
	"numeric(10,2)":               {"12345678.25", "-0.01", "0", "1.234"},
	"numeric(38,0)":               {"99999999999999999999999999999999999999", "-1"},
	"text":                        {`"a"`, `""`, `"€ 1"`, `"\u0000"`},
	"bytea":                       {`"AAEC"`, `""`, `"?"`},
	"date":                        {`"1677-01-01"`, `"2026-12-01"`},
	"time without time zone":      {`"12:34:56.000001"`},
	"timestamp without time zone": {`"1677-01-01T00:00:00"`, `"2026-12-01T10:00:00.5"`},
	"timestamp with time zone":    {`"1677-01-01T00:00:00Z"`, `"2026-12-01T10:00:00+02:00"`, `"x"`},
	"uuid":                        {`"6f1c0000-0000-4000-8000-000000000001"`},
	"jsonb":                       {`{"a":[1,2]}`, `[]`, `"x"`, "2"},
}

func anySource(t *rapid.T) job.Source {
	types := rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(func(yield func(string) bool) {
		for k := range kinds {
			if !yield(k) {
				return
			}
		}
	})), 1, 6, rapid.ID).Draw(t, "types")
	src := job.Source{Topics: []string{"orders"}, Format: "json"}
	for i, kind := range types {
		src.Columns = append(src.Columns, job.Column{Name: fmt.Sprintf("c%d", i), Type: kind})
	}
	src.OnError.SkipTombstones = rapid.Bool().Draw(t, "skip tombstones")
	return src
}

func record(t *rapid.T, src job.Source, offset int64) *kgo.Record {
	stamps := []int64{-1, 0, 1_700_000_000_000, -9_246_355_200_000, 253_402_300_800_000, -62_135_596_800_000}
	r := &kgo.Record{Topic: "orders", Partition: 7, Offset: offset, Timestamp: time.UnixMilli(rapid.SampledFrom(stamps).Draw(t, "timestamp"))}
	r.Key = rapid.SampledFrom([][]byte{nil, {}, []byte("k")}).Draw(t, "key")
	for range rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(t, "headers") {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: rapid.SampledFrom([]string{"h", "", "\xff"}).Draw(t, "header"), Value: r.Key})
	}
	switch rapid.IntRange(0, 12).Draw(t, "value") {
	case 0:
	case 1:
		r.Value = []byte{}
	case 2:
		r.Value = []byte("[")
	default:
		var members []string
		for _, c := range src.Columns {
			v := rapid.SampledFrom(append(slices.Clone(kinds[c.Type]), "null", "")).Draw(t, c.Type)
			if v != "" {
				members = append(members, fmt.Sprintf("%q:%s", c.Name, v))
			}
		}
		r.Value = []byte("{" + strings.Join(members, ",") + "}")
	}
	return r
}

// outcome is what a decoder makes of records: rows as text, and rejects.
type outcome struct {
	Rows, Rejects  []string
	Records, Bytes int64
	Newest         int64
}

func (o *outcome) reject(r *kgo.Record, why *format.Reject) {
	o.Rejects = append(o.Rejects, fmt.Sprintf("%d %q %q %v %v %d", r.Offset, r.Key, r.Value, r.Key == nil, why, r.Timestamp.UnixMilli()))
}

func (o *outcome) count(r *kgo.Record) {
	o.Records, o.Bytes = o.Records+1, o.Bytes+int64(len(r.Key)+len(r.Value))
	if ms := r.Timestamp.UnixMilli(); ms <= latestMillis {
		o.Newest = max(o.Newest, ms)
	}
}

func (o *outcome) rows(t *rapid.T, d interface{ MarshalJSON() ([]byte, error) }) {
	text, err := d.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var rows []json.RawMessage
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		o.Rows = append(o.Rows, string(r))
	}
}

// fromRecords is the outcome of decoding the records of [from, to).
func fromRecords(t *rapid.T, d *format.Decoder, records []*kgo.Record, from, to int64) outcome {
	out := outcome{Newest: -1}
	for _, r := range records {
		if r.Offset < from || r.Offset >= to {
			continue
		}
		if why := d.Append(r); why != nil {
			out.reject(r, why)
		}
		out.count(r)
	}
	b := d.Take()
	defer b.Release()
	out.rows(t, rowsOf(b))
	return out
}

// fromTyped is that of reading the typed file.
func fromTyped(t *rapid.T, d *format.Decoder, f *typedFile, from, to int64) outcome {
	out := outcome{Newest: -1}
	for next := from; next < to; {
		c, err := f.next(next, to, d)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.Next <= next || c.Next > to {
			t.Fatalf("from %d on: next is %d", next, c.Next)
		}
		for _, r := range c.Rejected {
			if why := d.Append(r); why != nil {
				out.reject(r, why)
			}
			out.count(r)
		}
		if d.Len() > 0 {
			t.Fatalf("a record that was rejected is taken")
		}
		if c.Batch != nil {
			if !c.Batch.Schema().Equal(d.Schema()) || c.Batch.NumRows() != c.Records {
				t.Fatalf("%d rows of %d records, %s", c.Batch.NumRows(), c.Records, c.Batch.Schema())
			}
			out.rows(t, rowsOf(c.Batch))
			c.Batch.Release()
		}
		out.Records, out.Bytes, out.Newest = out.Records+c.Records, out.Bytes+c.Bytes, max(out.Newest, c.Newest)
		next = c.Next
	}
	return out
}

// Whatever the columns and the records, and wherever reading begins and ends: typed columns give what the records do.
func TestTypedColumnsGiveWhatTheRecordsDo(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		src := anySource(t)
		var records []*kgo.Record
		offset := int64(10)
		for range rapid.IntRange(1, 40).Draw(t, "records") {
			records = append(records, record(t, src, offset))
			offset += int64(rapid.SampledFrom([]int{1, 1, 1, 5}).Draw(t, "step"))
		}
		row := archive.FileRow{Partition: partition, Range: job.Range{From: 8, To: offset}, Name: "raw", Records: int64(len(records)), SHA256: []byte{1}}
		w, err := newMaker(src, temp, row)
		if err != nil {
			t.Fatal(err)
		}
		w.most = rapid.SampledFrom([]int{1, 7, 100}).Draw(t, "rows of a row group")
		if err := w.add(records); err != nil {
			t.Fatal(err)
		}
		made, err := w.finish()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.end(false); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Remove(made.Path) }()
		names := append([]string{"_offset", "_timestamp", "_topic", "_partition"}, columnNames(src)...)
		fields := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, len(names), rapid.ID).Draw(t, "fields")
		from := rapid.Int64Range(8, offset-1).Draw(t, "from")
		to := rapid.Int64Range(from+1, offset).Draw(t, "to")
		check(t, src, fields, made, records, from, to)
	})
}

func columnNames(src job.Source) []string {
	out := make([]string, len(src.Columns))
	for i, c := range src.Columns {
		out[i] = c.Name
	}
	return out
}

func check(t *rapid.T, src job.Source, fields []string, made Made, records []*kgo.Record, from, to int64) {
	d, err := format.New(src, fields)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	all, err := declared(src)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	s, ok := sources(d, fieldsOf(all))
	if !ok {
		t.Fatalf("no sources of %v", fields)
	}
	local, err := os.Open(filepath.Clean(made.Path))
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	f, err := open(local, made.Of, made.Fingerprint, fieldsOf(all), s)
	if err != nil {
		t.Fatal(err)
	}
	f.most = rapid.SampledFrom([]int{1, 3, 100}).Draw(t, "rows of a batch")
	got := fromTyped(t, d, f, from, to)
	if diff := cmp.Diff(fromRecords(t, d, records, from, to), got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatTypedFilesDoNotHoldIsReadRaw(t *testing.T) {
	t.Parallel()
	src := job.Source{Format: "json", Columns: []job.Column{{Name: "v", Type: "bigint"}}}
	for _, field := range []string{"_key", "_headers", "_tombstone"} {
		d, err := format.New(src, []string{"v", field})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := sources(d, fieldsOf(d)[:1]); ok {
			t.Errorf("%s: a typed file is used", field)
		}
		d.Close()
	}
}

func TestAFingerprintIsThatOfFormatAndColumnsAlone(t *testing.T) {
	t.Parallel()
	base := job.Source{Topics: []string{"a"}, Format: "json", Columns: []job.Column{{Name: "v", Type: "bigint"}}}
	same := base
	same.Topics, same.OnError = []string{"b"}, job.OnError{Fail: true, SkipTombstones: true}
	if Fingerprint(base) != Fingerprint(same) {
		t.Error("topics and on_error change it")
	}
	for _, other := range []job.Source{
		{Format: "csv", Columns: base.Columns},
		{Format: "json", Columns: []job.Column{{Name: "v", Type: "integer"}}},
		{Format: "json", Columns: []job.Column{{Name: "v", Type: "bigint", Unit: "ms"}}},
		{Format: "json", Columns: []job.Column{{Name: "v", Type: "bigint", Path: "$.w"}}},
		{Format: "json", Columns: []job.Column{{Name: "v", Type: "bigint"}, {Name: "w", Type: "bigint"}}},
	} {
		if Fingerprint(base) == Fingerprint(other) {
			t.Errorf("%+v does not change it", other)
		}
	}
}
