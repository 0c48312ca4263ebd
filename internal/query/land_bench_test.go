package query

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/kappactl/kappactl/internal/job"
)

// BenchmarkLand is the statement of a replay's segment over batches that are there already: the engine's part of a replay.
func BenchmarkLand(b *testing.B) {
	spec := &job.Spec{
		Source: job.Source{Format: "json", Columns: []job.Column{
			{Name: "url", Type: "text"}, {Name: "ts", Type: "timestamp with time zone"}, {Name: "duration_ms", Type: "bigint"},
		}},
		Query: `SELECT url, date_trunc('hour', ts) AS hour, count(*) AS views, sum(duration_ms) AS total FROM source GROUP BY url, hour`,
	}
	c, err := Compile(b.Context(), spec)
	if err != nil {
		b.Fatal(err)
	}
	land := c.Land()
	s := open(b, Config{Memory: 300e6})
	rows, records := 0, 0
	for b.Loop() {
		in := pageviews(50, 20_000)
		if err := s.Run(b.Context(), land, in, func(r arrow.RecordBatch) error { rows += int(r.NumRows()); return nil }); err != nil {
			b.Fatal(err)
		}
		records += 50 * 20_000
	}
	if rows == 0 {
		b.Fatal("no rows")
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
}

// pageviews gives one batch n times.
func pageviews(n, size int) *stream {
	s := &stream{schema: rowSchema(
		arrow.Field{Name: "url", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "ts", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true},
		arrow.Field{Name: "duration_ms", Type: arrow.PrimitiveTypes.Int64, Nullable: true})}
	b := array.NewRecordBuilder(memory.DefaultAllocator, s.schema)
	defer b.Release()
	row := b.Field(0).(*array.StructBuilder)
	for i := range size {
		row.Append(true)
		row.FieldBuilder(0).(*array.StringBuilder).Append(fmt.Sprintf("/products/page-%03d", i*7919%1000))
		row.FieldBuilder(1).(*array.TimestampBuilder).Append(arrow.Timestamp(1_767_225_600_000_000 + int64(i)*4_000_000))
		row.FieldBuilder(2).(*array.Int64Builder).Append(int64(i * 37 % 5000))
	}
	batch := b.NewRecordBatch()
	s.next = func() (arrow.RecordBatch, error) {
		if n--; n < 0 {
			return nil, nil
		}
		batch.Retain()
		return batch, nil
	}
	return s
}
