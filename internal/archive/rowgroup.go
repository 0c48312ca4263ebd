package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/twmb/franz-go/pkg/kgo"
)

func wantSchema() *schema.Schema { return schema.NewSchema(fileSchema()) }

// offsetOf reads the plain encoding of a statistic.
func offsetOf(encoded []byte) (int64, bool) {
	if len(encoded) != 8 {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(encoded)), true //nolint:gosec // two's complement
}

// batchRows is how many rows are read at once, at most.
const batchRows = 8192

// groupReader reads the rows of one row group.
type groupReader struct {
	left                int64
	offsets, timestamps *file.Int64ColumnChunkReader
	types               *file.Int32ColumnChunkReader // nil: they are not asked for
	key, value          *bytesReader
	headers             *headerReader // nil: no record has one

	numbers, times []int64
	kinds          []int32
}

func newGroupReader(g *file.RowGroupReader, types bool) (*groupReader, error) {
	r := &groupReader{left: g.NumRows()}
	column := func(i int) file.ColumnChunkReader {
		c, err := g.Column(i)
		if err != nil {
			panic(err) // caught by File.Next
		}
		return c
	}
	ok := [5]bool{4: true}
	r.offsets, ok[0] = column(columnOffset).(*file.Int64ColumnChunkReader)
	r.timestamps, ok[1] = column(columnTimestamp).(*file.Int64ColumnChunkReader)
	r.key, ok[2] = newBytesReader(column(columnKey), 1)
	r.value, ok[3] = newBytesReader(column(columnValue), 1)
	if types {
		r.types, ok[4] = column(columnTimestampType).(*file.Int32ColumnChunkReader)
	}
	if ok != [5]bool{true, true, true, true, true} {
		return nil, errors.New("the file has columns of other types than a file of the archive")
	}
	chunk, err := g.MetaData().ColumnChunk(columnHeaderKey)
	if err != nil {
		return nil, err
	}
	stats, err := chunk.Statistics()
	if err == nil && stats != nil && stats.HasNullCount() && stats.NullCount() == chunk.NumValues() {
		return r, nil
	}
	r.headers, err = newHeaderReader(column(columnHeaderKey), column(columnHeaderValue))
	return r, err
}

// next returns up to most rows, io.EOF after the last.
func (r *groupReader) next(most int) ([]*kgo.Record, error) {
	n := int(min(r.left, int64(most), batchRows))
	if n == 0 {
		return nil, io.EOF
	}
	r.left -= int64(n)
	r.numbers, r.times = sized(r.numbers, n), sized(r.times, n)
	if err := errors.Join(readNumbers(r.offsets, r.numbers), readNumbers(r.timestamps, r.times)); err != nil {
		return nil, err
	}
	keys, err := r.key.read(n)
	if err != nil {
		return nil, err
	}
	values, err := r.value.read(n)
	if err != nil {
		return nil, err
	}
	slab, out := make([]kgo.Record, n), make([]*kgo.Record, n)
	for i := range slab {
		slab[i] = kgo.Record{Offset: r.numbers[i], Timestamp: millis(r.times[i]), Key: keys[i], Value: values[i]}
		out[i] = &slab[i]
	}
	if r.types != nil {
		if err := r.readTypes(out); err != nil {
			return nil, err
		}
	}
	if r.headers != nil {
		err = r.headers.read(out)
	}
	return out, err
}

// readTypes adds the types of the timestamps.
func (r *groupReader) readTypes(to []*kgo.Record) error {
	r.kinds = sized(r.kinds, len(to))
	if err := readNumbers(r.types, r.kinds); err != nil {
		return err
	}
	for i, rec := range to {
		rec.Attrs = kgo.NewRecordAttrs(kgo.RecordAttrsOpts{TimestampType: int8(r.kinds[i])}) //nolint:gosec // -1, 0 or 1
	}
	return nil
}

func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// numberReader is a column of numbers without nulls.
type numberReader[T any] interface {
	ReadBatch(rows int64, values []T, definition, repetition []int16) (total int64, found int, err error)
}

func readNumbers[T any](c numberReader[T], into []T) error {
	for len(into) > 0 {
		_, n, err := c.ReadBatch(int64(len(into)), into, nil, nil)
		if err != nil {
			return err
		}
		if n == 0 {
			return errShort
		}
		into = into[n:]
	}
	return nil
}

var errShort = fmt.Errorf("a column of the file has fewer values than its row group: %w", io.ErrUnexpectedEOF)

// bytesReader reads a column of bytes that is not repeated.
type bytesReader struct {
	c       *file.ByteArrayColumnChunkReader
	present int16 // the definition level of a value

	found  []parquet.ByteArray
	levels []int16
}

func newBytesReader(c file.ColumnChunkReader, present int16) (*bytesReader, bool) {
	r, ok := c.(*file.ByteArrayColumnChunkReader)
	return &bytesReader{c: r, present: present}, ok
}

// read returns n values, copied into memory of their own; nil is null.
func (b *bytesReader) read(n int) ([][]byte, error) {
	out := make([][]byte, 0, n)
	b.found, b.levels = sized(b.found, n), sized(b.levels, n)
	for len(out) < n {
		want := n - len(out)
		total, found, err := b.c.ReadBatchInPage(int64(want), b.found[:want], b.levels[:want], nil)
		if err != nil {
			return nil, err
		}
		if total == 0 {
			return nil, errShort
		}
		out = spread(out, b.found[:found], b.levels[:total], b.present)
	}
	return out, nil
}

// spread appends a value or nil for each level; the values are copied into one piece of memory.
func spread(out [][]byte, values []parquet.ByteArray, levels []int16, present int16) [][]byte {
	size := 0
	for _, v := range values {
		size += len(v)
	}
	memory := make([]byte, 0, size)
	at := 0
	for _, l := range levels {
		if l != present {
			out = append(out, nil)
			continue
		}
		from := len(memory)
		memory = append(memory, values[at]...)
		out = append(out, memory[from:len(memory):len(memory)])
		at++
	}
	return out
}
