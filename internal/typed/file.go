package typed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/format"
)

// latestMillis bounds the timestamps that are believed: the year 9999 begins to end.
var latestMillis = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC).UnixMilli()

// batchRows is how many rows a batch has, at most.
const batchRows = 16_384

// Chunk is the records of a range of offsets, decoded.
type Chunk struct {
	Next        int64             // the range ends before it
	LeaderEpoch int32             // as an answer of an archive.Reader has it
	Batch       arrow.RecordBatch // nil: no record was accepted. The caller releases it
	Records     int64             // in Batch
	Bytes       int64             // of their keys and values
	Newest      int64             // the newest timestamp in Batch in milliseconds; -1: none has one
	Rejected    []*kgo.Record     // which the decoder is to reject again
}

// typedFile reads one typed file.
type typedFile struct {
	of      archive.FileRow // the archive file
	reader  *file.Reader
	group   int   // the next row group
	left    int   // rows of the row group in hand
	at      int64 // rows before it were read
	most    int   // rows of a batch
	columns []source

	offsets, timestamps, bytes *file.Int64ColumnChunkReader
	records                    *variable // nil: no record of the row group was rejected
}

// source is where a field of a batch comes from.
type source struct {
	field  arrow.Field
	column int          // of the file; -1: none
	reader columnReader // of the row group in hand
}

// open checks that a file has the typed columns of an archive file and opens it.
func open(r parquet.ReaderAtSeeker, of archive.FileRow, fingerprint string, declared []arrow.Field,
	sources []source,
) (_ *typedFile, err error) {
	defer archive.Caught(&err)
	reader, err := file.NewParquetReader(r)
	if err != nil {
		return nil, err
	}
	root, err := fileSchema(declared)
	meta := reader.MetaData()
	if v := meta.KeyValueMetadata().FindValue(keyOf); err == nil && (v == nil || *v != identity(of, fingerprint)) {
		err = errors.New("its footer names another archive file")
	}
	if err == nil && !meta.Schema.Root().Equals(root) {
		err = errors.New("it has other columns than the job declares")
	}
	if err == nil && reader.NumRows() != of.Records {
		err = fmt.Errorf("it has %d rows, the archive file %d records", reader.NumRows(), of.Records)
	}
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	return &typedFile{of: of, reader: reader, most: batchRows, columns: slices.Clone(sources)}, nil
}

// next returns the records from an offset on, up to most, from one batch of rows; io.EOF after the last.
func (f *typedFile) next(from, most int64, d *format.Decoder) (_ Chunk, err error) {
	defer archive.Caught(&err)
	for {
		if f.left == 0 {
			if err := f.nextGroup(from); err != nil {
				return Chunk{}, err
			}
		}
		c, found, err := f.batch(from, most, d)
		if err != nil || found {
			return c, err
		}
	}
}

// nextGroup begins the next row group that has a record at or behind an offset.
func (f *typedFile) nextGroup(from int64) error {
	meta := f.reader.MetaData()
	service := meta.Schema.NumColumns() - serviceColumns
	for ; ; f.group++ {
		if f.group == f.reader.NumRowGroups() {
			return io.EOF
		}
		if last, known := archive.LastOffset(meta.RowGroup(f.group), service); !known || last >= from {
			break
		}
	}
	g := f.reader.RowGroup(f.group)
	f.group++
	for i := range f.columns {
		c := &f.columns[i]
		if c.column < 0 {
			continue
		}
		chunk, err := g.Column(c.column)
		if err == nil {
			c.reader, err = newColumnReader(chunk, c.field.Type)
		}
		if err != nil {
			return err
		}
	}
	for i, to := range []**file.Int64ColumnChunkReader{&f.offsets, &f.timestamps, &f.bytes} {
		chunk, err := g.Column(service + i)
		if err != nil {
			return err
		}
		*to = chunk.(*file.Int64ColumnChunkReader) //nolint:forcetypeassert // the file's schema was compared
	}
	f.left = int(g.NumRows())
	return f.nextRecords(g, service+serviceColumns-1)
}

// nextRecords begins the column of rejected records, unless the row group has none.
func (f *typedFile) nextRecords(g *file.RowGroupReader, column int) error {
	f.records = nil
	chunk, err := g.MetaData().ColumnChunk(column)
	if err != nil {
		return err
	}
	stats, err := chunk.Statistics()
	if err == nil && stats != nil && stats.HasNullCount() && stats.NullCount() == chunk.NumValues() {
		return nil
	}
	c, err := g.Column(column)
	if err != nil {
		return err
	}
	f.records = &variable{c: c.(*file.ByteArrayColumnChunkReader)} //nolint:forcetypeassert // the file's schema was compared
	return nil
}

// batch reads the next rows. found is false when none of them has an offset of [from, most).
func (f *typedFile) batch(from, most int64, d *format.Decoder) (c Chunk, found bool, err error) {
	n := min(f.left, f.most)
	f.left -= n
	offsets, timestamps, bytes := make([]int64, n), make([]int64, n), make([]int64, n)
	err = errors.Join(readNumbers(f.offsets, offsets), readNumbers(f.timestamps, timestamps), readNumbers(f.bytes, bytes))
	if err != nil {
		return c, false, err
	}
	r := rows{n: n}
	r.from, _ = slices.BinarySearch(offsets, from)
	r.to, _ = slices.BinarySearch(offsets, most)
	f.at = offsets[n-1] + 1
	if c.Rejected, err = f.rejected(&r, offsets, timestamps); err != nil {
		return c, false, err
	}
	fields, err := f.fields(r, offsets, timestamps)
	if err != nil {
		return c, false, err
	}
	switch c.Newest = -1; {
	case r.to < n:
		c.Next = most
	case r.from == n:
		return c, false, nil
	default:
		c.Next = f.at
	}
	r.each(func(row int) {
		c.Records, c.Bytes = c.Records+1, c.Bytes+bytes[row]
		if timestamps[row] <= latestMillis {
			c.Newest = max(c.Newest, timestamps[row])
		}
	})
	if c.Records > 0 {
		c.Batch = d.Batch(fields, int(c.Records))
	}
	return c, true, nil
}

// rejected reads which rows were rejected, and the records of those that are wanted.
func (f *typedFile) rejected(r *rows, offsets, timestamps []int64) (out []*kgo.Record, err error) {
	if f.records == nil {
		return nil, nil
	}
	var failed error
	err = f.records.each(r.n, func(row int, text parquet.ByteArray, present bool) {
		if !present {
			return
		}
		r.rejected = append(r.rejected, row)
		if row < r.from || row >= r.to {
			return
		}
		rec, err := unpack(text)
		if err != nil {
			failed = err
			return
		}
		rec.Topic, rec.Partition, rec.Offset, rec.Timestamp = f.of.Topic, f.of.ID, offsets[row],
			time.UnixMilli(timestamps[row])
		out = append(out, rec)
	})
	return out, errors.Join(err, failed)
}

// fields reads the fields of a batch.
func (f *typedFile) fields(r rows, offsets, timestamps []int64) ([]arrow.ArrayData, error) {
	out := make([]arrow.ArrayData, len(f.columns))
	for i := range f.columns {
		c := &f.columns[i]
		if c.column < 0 {
			out[i] = f.meta(c.field, r, offsets, timestamps)
			continue
		}
		var err error
		if out[i], err = c.reader.read(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// meta makes a meta column.
func (f *typedFile) meta(field arrow.Field, r rows, offsets, timestamps []int64) arrow.ArrayData {
	var data, ends []byte
	var nulls nulls
	n := 0
	r.each(func(row int) {
		switch field.Name {
		case "_topic":
			ends = binary.LittleEndian.AppendUint64(ends, uint64(len(data)))
			data = append(data, f.of.Topic...)
		case "_partition":
			data = binary.LittleEndian.AppendUint32(data, uint32(f.of.ID)) //nolint:gosec // its bits
		case "_offset":
			data = binary.LittleEndian.AppendUint64(data, uint64(offsets[row])) //nolint:gosec // its bits
		case "_timestamp":
			us, ok := micros(timestamps[row])
			if !ok {
				nulls.add(n, r)
			}
			data = binary.LittleEndian.AppendUint64(data, uint64(us)) //nolint:gosec // its bits
		}
		n++
	})
	buffers := []*memory.Buffer{nulls.buffer(), memory.NewBufferBytes(data)}
	if field.Name == "_topic" {
		ends = binary.LittleEndian.AppendUint64(ends, uint64(len(data)))
		buffers = []*memory.Buffer{nil, memory.NewBufferBytes(ends), memory.NewBufferBytes(data)}
	}
	return array.NewData(field.Type, n, buffers, nil, nulls.count, 0)
}

// sources are where the fields of a decoder come from; ok is false when one of them is in no typed file.
func sources(d *format.Decoder, declared []arrow.Field) (out []source, ok bool) {
	for _, f := range fieldsOf(d) {
		s := source{field: f, column: slices.IndexFunc(declared, func(c arrow.Field) bool { return c.Name == f.Name })}
		if s.column < 0 && !slices.Contains([]string{"_topic", "_partition", "_offset", "_timestamp"}, f.Name) {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}
