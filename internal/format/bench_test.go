package format

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

const (
	benchFields = `"user_id":"u%06d","url":"/products/page-%03d","ts":"2026-01-%02dT10:%02d:05.123Z","duration_ms":%d,` +
		`"agent":"Mozilla/5.0 (X11; Linux x86_64)","session":"%016x"`
	benchFlat   = `{` + benchFields + `}`
	benchNested = `{"op":"c","payload":{"after":{` + benchFields + `},"ts":1767225600}}`
)

func benchColumns(parent string) []job.Column {
	columns := []job.Column{
		{Name: "user_id", Type: "text"},
		{Name: "url", Type: "text"},
		{Name: "ts", Type: "timestamp with time zone"},
		{Name: "duration_ms", Type: "bigint"},
	}
	for i, c := range columns {
		if parent != "" {
			columns[i].Path = parent + "." + c.Name
		}
	}
	return columns
}

func BenchmarkDecode(b *testing.B) { decodeAll(b, benchFlat, benchColumns("")) }

// BenchmarkDecodeNested takes the same fields two objects further in.
func BenchmarkDecodeNested(b *testing.B) { decodeAll(b, benchNested, benchColumns("$.payload.after")) }

// BenchmarkDecodeEnvelope has the records of BenchmarkDecodeNested, of which it takes fields at the top.
func BenchmarkDecodeEnvelope(b *testing.B) {
	decodeAll(b, benchNested, []job.Column{{Name: "op", Type: "text"}})
}

// BenchmarkDecodeJSON takes the object two further in as one column.
func BenchmarkDecodeJSON(b *testing.B) {
	decodeAll(b, benchNested, []job.Column{{Name: "after", Type: "jsonb", Path: "$.payload.after"}})
}

// decodeAll decodes records of this text.
func decodeAll(b *testing.B, text string, columns []job.Column) {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	d, err := New(job.Source{Format: "json", Columns: columns}, names)
	if err != nil {
		b.Fatal(err)
	}
	records := make([]*kgo.Record, 1000)
	for i := range records {
		v := fmt.Sprintf(text, i*7919%100000, i%1000, i%28+1, i%60, i*37%9000, i*1_000_003)
		records[i] = &kgo.Record{Value: []byte(v)}
	}
	b.SetBytes(int64(len(records[0].Value)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if r := d.Append(records[n%len(records)]); r != nil {
			b.Fatal(r)
		}
		if n++; n%20_000 == 0 {
			d.Take().Release()
		}
	}
}
