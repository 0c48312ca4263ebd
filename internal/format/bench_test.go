package format

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

func BenchmarkDecode(b *testing.B) {
	src := job.Source{Format: "json", Columns: []job.Column{
		{Name: "user_id", Type: "text"},
		{Name: "url", Type: "text"},
		{Name: "ts", Type: "timestamp with time zone"},
		{Name: "duration_ms", Type: "bigint"},
	}}
	d, err := New(src, []string{"url", "ts", "duration_ms", "user_id"})
	if err != nil {
		b.Fatal(err)
	}
	records := make([]*kgo.Record, 1000)
	for i := range records {
		v := fmt.Sprintf(`{"user_id":"u%06d","url":"/products/page-%03d","ts":"2026-01-%02dT10:%02d:05.123Z","duration_ms":%d,"agent":"Mozilla/5.0 (X11; Linux x86_64)","session":"%016x"}`,
			i*7919%100000, i%1000, i%28+1, i%60, i*37%9000, i*1_000_003)
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
