package archive_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
)

// views are n records of about 168 bytes.
func views(n int) []*kgo.Record {
	out := make([]*kgo.Record, n)
	for i := range out {
		out[i] = &kgo.Record{Offset: int64(i), Timestamp: time.UnixMilli(1_700_000_000_000 + int64(i)), Value: fmt.Appendf(nil,
			`{"url":"https://example.com/page/%04d","user":"u%08d","ts":"2026-01-%02dT%02d:00:00Z","duration_ms":%d,"agent":"Mozilla/5.0 (X11; Linux x86_64)","ok":true}`,
			i*7919%1000, i*104729%1_000_000, i%28+1, i%24, i*31%5000)}
	}
	return out
}

// purchases are n records of about 360 bytes with a key, of values that repeat as those of shops do: random ids and amounts, and
// customers, articles and words of which some are much more frequent than others.
func purchases(n int) []*kgo.Record {
	rnd := rand.New(rand.NewPCG(1, 2))
	customers, articles := rand.NewZipf(rnd, 1.2, 10, 2_000_000), rand.NewZipf(rnd, 1.1, 5, 50_000)
	cities := []string{"Berlin", "Hamburg", "München", "Köln", "Frankfurt am Main", "Stuttgart", "Leipzig", "Bremen"}
	out := make([]*kgo.Record, n)
	at := time.UnixMilli(1_700_000_000_000)
	for i := range out {
		at = at.Add(time.Duration(rnd.IntN(40)) * time.Millisecond)
		customer, cents := customers.Uint64(), rnd.IntN(20_000)
		out[i] = &kgo.Record{Offset: int64(i), Timestamp: at, Key: fmt.Appendf(nil, "c-%08d", customer), Value: fmt.Appendf(nil,
			`{"event_id":"%08x-%04x-4%03x-%04x-%012x","type":"purchase","at":%q,"customer_id":%d,"session":"%016x",`+
				`"article":{"id":"A%06d","quantity":%d,"price":%d.%02d,"currency":"EUR"},"address":{"city":%q,"zip":"%05d"},`+
				`"client":{"ip":"%d.%d.%d.%d","app":"shop-ios/7.%d.%d"},"tracking":"%016x"}`,
			rnd.Uint32(), rnd.IntN(1<<16), rnd.IntN(1<<12), rnd.IntN(1<<16), rnd.Uint64N(1<<48), at.UTC().Format(time.RFC3339Nano),
			customer, rnd.Uint64(), articles.Uint64(), 1+rnd.IntN(3), cents/100, cents%100, cities[rnd.IntN(len(cities))], rnd.IntN(100_000),
			rnd.IntN(256), rnd.IntN(256), rnd.IntN(256), rnd.IntN(256), rnd.IntN(9), rnd.IntN(20), rnd.Uint64())}
	}
	return out
}

func BenchmarkWrite(b *testing.B) {
	for name, records := range map[string][]*kgo.Record{"views": views(200_000), "purchases": purchases(200_000)} {
		b.Run(name, func(b *testing.B) { benchmarkWrite(b, records) })
	}
}

func benchmarkWrite(b *testing.B, records []*kgo.Record) {
	read := 0
	for _, r := range records {
		read += len(r.Key) + len(r.Value)
	}
	for b.Loop() {
		w, err := archive.NewWriter(b.TempDir(), orders, 0)
		if err != nil {
			b.Fatal(err)
		}
		for i, r := range records {
			if err := w.Add(r); err != nil {
				b.Fatal(err)
			}
			if i%50_000 == 0 {
				if err := w.Flush(); err != nil {
					b.Fatal(err)
				}
			}
		}
		f, err := w.Finish(archive.Footer{Partition: orders, Range: job.Range{From: 0, To: 200_000}})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(f.Bytes)/200_000, "bytes/record")
	}
	b.ReportMetric(float64(read)/float64(len(records)), "read-bytes/record")
	b.ReportMetric(200_000*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkRead(b *testing.B) {
	_, text := write(b, orders, job.Range{From: 0, To: 200_000}, views(200_000), 50_000)
	for b.Loop() {
		f, err := archive.NewFile(bytes.NewReader(text))
		if err != nil {
			b.Fatal(err)
		}
		for {
			if _, err := f.Next(8192); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(200_000*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
