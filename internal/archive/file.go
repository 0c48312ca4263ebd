package archive

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/twmb/franz-go/pkg/kgo"
)

// File reads one file of the archive. One goroutine owns it. Close ends it.
type File struct {
	Footer Footer
	reader *file.Reader
	group  int // the next row group
	rows   *groupReader
	from   int64 // records before it are left out
	types  bool  // records have the types of their timestamps
}

// NewFile opens a file of the archive. It checks the footer, not the hash: see Hash.
func NewFile(r parquet.ReaderAtSeeker) (*File, error) {
	reader, err := openParquet(r)
	if err != nil {
		return nil, err
	}
	footer, err := parseFooter(reader.MetaData().KeyValueMetadata())
	if err == nil && !reader.MetaData().Schema.Equals(wantSchema()) {
		err = fmt.Errorf("the file has other columns than a file of the archive")
	}
	if err == nil && reader.NumRows() != footer.Records {
		err = fmt.Errorf("the file holds %d records, its footer names %d", reader.NumRows(), footer.Records)
	}
	if err != nil {
		_ = reader.Close()
		return nil, err
	}
	return &File{Footer: footer, reader: reader, from: footer.From}, nil
}

// openParquet reads the Parquet footer; the library panics on some damaged files.
func openParquet(r parquet.ReaderAtSeeker) (_ *file.Reader, err error) {
	defer Caught(&err)
	return file.NewParquetReader(r)
}

// Caught turns a panic of the Parquet library over damaged bytes into an error.
func Caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the file is damaged: %v", p)
	}
}

// Close ends the file.
func (f *File) Close() error { return f.reader.Close() }

// Rows is how many records make up about so many bytes, at least one.
func (f *File) Rows(bytes int64) int {
	var size int64
	for i := range f.reader.NumRowGroups() {
		size += f.reader.MetaData().RowGroup(i).TotalByteSize()
	}
	if size == 0 {
		return batchRows
	}
	return int(min(max(bytes*f.reader.NumRows()/size, 1), batchRows))
}

// From goes on with the first record at or behind offset, forwards only.
func (f *File) From(offset int64) { f.from = max(f.from, offset) }

// WithTypes gives the records the types of their timestamps. Only what writes another file needs them.
func (f *File) WithTypes() { f.types = true }

// Next returns up to most records, at least one; io.EOF after the last.
func (f *File) Next(most int) (_ []*kgo.Record, err error) {
	defer Caught(&err)
	for {
		if f.rows == nil {
			if f.group == f.reader.NumRowGroups() {
				return nil, io.EOF
			}
			f.group++
			if f.passed(f.group - 1) {
				continue
			}
			if f.rows, err = newGroupReader(f.reader.RowGroup(f.group-1), f.types); err != nil {
				return nil, err
			}
		}
		records, err := f.rows.next(most)
		if errors.Is(err, io.EOF) {
			f.rows = nil
			continue
		}
		if err != nil {
			return nil, err
		}
		if records = f.wanted(records); len(records) > 0 {
			return f.name(records), nil
		}
	}
}

// passed reports whether a row group holds only records before the offset that was sought.
func (f *File) passed(group int) bool {
	last, known := LastOffset(f.reader.MetaData().RowGroup(group), columnOffset)
	return known && last < f.from
}

// LastOffset is the last offset of a row group, by the statistics of the column that holds the offsets.
func LastOffset(group *metadata.RowGroupMetaData, column int) (last int64, known bool) {
	chunk, err := group.ColumnChunk(column)
	if err != nil {
		return 0, false
	}
	stats, err := chunk.Statistics()
	if err != nil || stats == nil || !stats.HasMinMax() {
		return 0, false
	}
	return offsetOf(stats.EncodeMax())
}

func (f *File) wanted(records []*kgo.Record) []*kgo.Record {
	i, _ := slices.BinarySearchFunc(records, f.from, func(r *kgo.Record, offset int64) int {
		return int(min(1, max(-1, r.Offset-offset)))
	})
	return records[i:]
}

// name fills in what the footer holds for all records.
func (f *File) name(records []*kgo.Record) []*kgo.Record {
	for _, r := range records {
		r.Topic, r.Partition, r.LeaderEpoch = f.Footer.Topic, f.Footer.ID, f.Footer.LeaderEpoch
	}
	return records
}

// millis is a timestamp of a file.
func millis(ms int64) time.Time { return time.UnixMilli(ms) }
