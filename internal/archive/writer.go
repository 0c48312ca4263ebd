package archive

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"time"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
)

// Writer writes one file into a temporary folder: records are collected in memory and written as a row group by Flush.
// One goroutine owns it. Finish or Discard ends it.
type Writer struct {
	file      *os.File
	hash      hash.Hash
	parquet   *file.Writer
	partition job.Partition
	rows      columns
	records   int64
	next      int64 // the least offset that the next record may have
	min, max  int64 // timestamps, in milliseconds
	ended     bool
}

// Finished is a file that is complete, in a temporary folder.
type Finished struct {
	Path   string
	Footer Footer
	Bytes  int64
	SHA256 []byte
	// MinTimestamp and MaxTimestamp are those of its records, in milliseconds; only meaningful with records.
	MinTimestamp, MaxTimestamp int64
	// CaughtUp is how long ago the log held no more than is archived with this file; nil: that is not known.
	CaughtUp *time.Duration
}

// Name is the file's name in the archive.
func (f Finished) Name() string { return FileName(f.Footer.Partition, f.Footer.Range, f.SHA256) }

// NewWriter creates a temporary file in folder for records of p from offset from on.
func NewWriter(folder string, p job.Partition, from int64) (*Writer, error) {
	f, err := os.CreateTemp(folder, "archive-*.parquet")
	if err != nil {
		return nil, fmt.Errorf("create a file of the archive: %w", err)
	}
	w := &Writer{file: f, hash: sha256.New(), partition: p, next: from}
	w.parquet, err = file.NewParquetWriterWithError(io.MultiWriter(f, w.hash), fileSchema(),
		file.WithWriterProps(writerProperties()))
	if err != nil {
		w.Discard()
		return nil, w.failed(err)
	}
	return w, nil
}

// Add takes a record into the next row group. Offsets rise.
func (w *Writer) Add(r *kgo.Record) error {
	if r.Offset < w.next {
		return fmt.Errorf("archive %s: offset %d comes after %d", w.partition, r.Offset, w.next-1)
	}
	ms := r.Timestamp.UnixMilli()
	if w.records == 0 {
		w.min, w.max = ms, ms
	}
	w.min, w.max = min(w.min, ms), max(w.max, ms)
	w.rows.add(r)
	w.records++
	w.next = r.Offset + 1
	return nil
}

// Records is the number of records so far.
func (w *Writer) Records() int64 { return w.records }

// Buffered is the memory that the records of the next row group take, in bytes.
func (w *Writer) Buffered() int { return w.rows.size() }

// Size is about how large the file would be with the records so far, in bytes: those in memory count uncompressed.
func (w *Writer) Size() int64 { return w.parquet.TotalBytesWritten() + int64(w.rows.size()) }

// Flush writes the records in memory as a row group.
func (w *Writer) Flush() error {
	if len(w.rows.offsets) == 0 {
		return nil
	}
	if err := writeRowGroup(w.parquet, w.partition, &w.rows); err != nil {
		return w.failed(err)
	}
	faultpoint.Hit(RowGroup)
	w.rows = columns{} // the memory is another partition's now
	return nil
}

// Finish writes the rest and the footer and closes the file, which covers footer.Range. The caller removes it. After an
// error nothing is left.
func (w *Writer) Finish(footer Footer) (_ Finished, err error) {
	defer func() {
		if err != nil {
			w.Discard()
		}
	}()
	if err := w.Flush(); err != nil {
		return Finished{}, err
	}
	if footer.Partition != w.partition || footer.To < w.next {
		return Finished{}, w.failed(fmt.Errorf("the range %s of %s does not hold offset %d", footer.Range, footer.Partition,
			w.next-1))
	}
	footer.Records = w.records
	for _, kv := range footer.pairs() {
		if err := w.parquet.AppendKeyValueMetadata(kv[0], kv[1]); err != nil {
			return Finished{}, w.failed(err)
		}
	}
	if err := w.parquet.Close(); err != nil {
		return Finished{}, w.failed(err)
	}
	info, err := w.file.Stat()
	if err == nil {
		err = w.file.Close()
	}
	if err != nil {
		return Finished{}, w.failed(err)
	}
	w.ended = true
	return Finished{
		Path: w.file.Name(), Footer: footer, Bytes: info.Size(), SHA256: w.hash.Sum(nil), MinTimestamp: w.min,
		MaxTimestamp: w.max,
	}, nil
}

// Discard removes what was written, unless the file is finished.
func (w *Writer) Discard() {
	if w.ended {
		return
	}
	w.ended = true
	_ = w.file.Close()
	_ = os.Remove(w.file.Name()) // in the agent's temporary folder, which goes with the agent
}

func (w *Writer) failed(err error) error {
	return fmt.Errorf("write an archive file of %s: %w", w.partition, err)
}

// writeRowGroup writes c as one row group.
func writeRowGroup(to *file.Writer, p job.Partition, c *columns) error {
	group, err := to.AppendRowGroupChecked()
	if err != nil {
		return err
	}
	n := len(c.offsets)
	ids, partitions := make([]parquet.FixedLenByteArray, n), make([]int32, n)
	for i := range ids {
		ids[i], partitions[i] = p.TopicID[:], p.ID
	}
	for at := range columnCount {
		w, err := group.NextColumn()
		if err != nil {
			return err
		}
		switch w := w.(type) {
		case *file.FixedLenByteArrayColumnChunkWriter:
			_, err = w.WriteBatch(ids, nil, nil)
		case *file.Int32ColumnChunkWriter:
			_, err = w.WriteBatch(map[int][]int32{columnPartition: partitions, columnTimestampType: c.types}[at], nil, nil)
		case *file.Int64ColumnChunkWriter:
			_, err = w.WriteBatch(map[int][]int64{columnOffset: c.offsets, columnTimestamp: c.timestamps}[at], nil, nil)
		case *file.ByteArrayColumnChunkWriter:
			err = writeBytes(w, at, c)
		default:
			err = fmt.Errorf("column %d has an unknown type", at)
		}
		if err = errors.Join(err, w.Close()); err != nil {
			return err
		}
	}
	return group.Close()
}

func writeBytes(w *file.ByteArrayColumnChunkWriter, at int, c *columns) (err error) {
	switch at {
	case columnKey:
		_, err = w.WriteBatch(c.key.values(), c.key.levels, nil)
	case columnValue:
		_, err = w.WriteBatch(c.value.values(), c.value.levels, nil)
	case columnHeaderKey:
		_, err = w.WriteBatch(c.headerKey.values(), c.headerKey.levels, c.repeated)
	case columnHeaderValue:
		_, err = w.WriteBatch(c.headerValue.values(), c.headerValue.levels, c.repeated)
	}
	return err
}
