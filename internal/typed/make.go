package typed

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
)

// groupRows is how many rows a row group has, at most; a reader that begins inside of one reads it from its start.
const groupRows = 1 << 16

// groupBytes bounds the memory of a row group.
const groupBytes = 32 << 20

// Made is a typed file that is complete, in a temporary folder.
type Made struct {
	Of          archive.FileRow // the archive file
	Fingerprint string
	Path        string
	Bytes       int64
	SHA256      []byte
	Rejected    int64 // records
}

// Name is the file's name below the location of the archive file:
// TOPIC/TOPIC-ID/typed-FINGERPRINT/PARTITION/FROM-TO-HASH.parquet.
func (m Made) Name() string {
	return path.Join(archive.Folder(m.Of.Topic, m.Of.TopicID), archive.TypedFolder+m.Fingerprint,
		strconv.Itoa(int(m.Of.ID)),
		fmt.Sprintf("%d-%d-%x.parquet", m.Of.From, m.Of.To, m.SHA256[:8]))
}

// Make decodes the records of an archive file as a source declares them and writes a typed file into a temporary
// folder. The caller removes it.
func Make(ctx context.Context, l archive.Location, row archive.FileRow, src job.Source, temp string) (_ Made,
	err error,
) {
	w, err := newMaker(src, temp, row)
	if err != nil {
		return Made{}, err
	}
	defer func() { err = errors.Join(err, w.end(err != nil)) }()
	if err := archive.Records(ctx, l, temp, row, w.add); err != nil {
		return Made{}, err
	}
	return w.finish()
}

// maker writes one typed file. One goroutine owns it.
type maker struct {
	made    Made
	file    *os.File
	parquet *file.Writer
	decoder *format.Decoder
	hash    hash.Hash
	rows    service
	most    int // rows of a row group
}

// service are the columns behind the declared ones, of the next row group.
type service struct {
	offsets, timestamps, bytes []int64
	records                    []parquet.ByteArray
	levels                     []int16 // of records
	size                       int     // of records, in bytes
}

func newMaker(src job.Source, temp string, row archive.FileRow) (*maker, error) {
	d, err := declared(src)
	if err != nil {
		return nil, err
	}
	root, err := fileSchema(fieldsOf(d))
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(temp, "typed-*.parquet")
	if err != nil {
		return nil, fmt.Errorf("create a typed file: %w", err)
	}
	h := sha256.New()
	w := &maker{
		made: Made{Of: row, Fingerprint: Fingerprint(src), Path: f.Name()}, file: f, decoder: d, hash: h,
		most: groupRows,
	}
	w.parquet, err = file.NewParquetWriterWithError(io.MultiWriter(f, h), root, file.WithWriterProps(writerProperties()))
	if err != nil {
		return nil, errors.Join(err, w.end(true))
	}
	return w, nil
}

// end closes the temporary file, and removes it when it is not wanted.
func (w *maker) end(remove bool) error {
	w.decoder.Close()
	err := w.file.Close()
	if remove {
		err = errors.Join(err, os.Remove(w.file.Name()))
	}
	return err
}

func (w *maker) add(records []*kgo.Record) error {
	for _, r := range records {
		if err := w.one(r); err != nil {
			return err
		}
		if len(w.rows.offsets) == w.most || w.decoder.Reaches(groupBytes-w.rows.size) {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *maker) one(r *kgo.Record) error {
	s := &w.rows
	s.offsets, s.timestamps = append(s.offsets, r.Offset), append(s.timestamps, r.Timestamp.UnixMilli())
	s.bytes = append(s.bytes, int64(len(r.Key)+len(r.Value)))
	if w.decoder.Append(r) == nil {
		s.levels = append(s.levels, 0)
		return nil
	}
	w.decoder.AppendNull(r)
	text, err := pack(r)
	if err != nil {
		return err
	}
	s.records, s.levels, s.size = append(s.records, text), append(s.levels, 1), s.size+len(text)
	w.made.Rejected++
	return nil
}

// flush writes the rows so far as a row group.
func (w *maker) flush() error {
	batch := w.decoder.Take()
	defer batch.Release()
	rows := rowsOf(batch)
	if rows.Len() == 0 {
		return nil
	}
	group, err := w.parquet.AppendRowGroupChecked()
	if err != nil {
		return err
	}
	for i := range rows.NumField() {
		if err := writeColumn(group, rows.Field(i)); err != nil {
			return err
		}
	}
	if err := w.rows.write(group); err != nil {
		return err
	}
	w.rows = service{}
	return group.Close()
}

func (s *service) write(group file.SerialRowGroupWriter) error {
	for _, numbers := range [][]int64{s.offsets, s.timestamps, s.bytes} {
		if err := writeValues(group, numbers, nil); err != nil {
			return err
		}
	}
	return writeValues(group, s.records, s.levels)
}

func (w *maker) finish() (Made, error) {
	if err := w.flush(); err != nil {
		return Made{}, err
	}
	if err := w.parquet.AppendKeyValueMetadata(keyOf, identity(w.made.Of, w.made.Fingerprint)); err != nil {
		return Made{}, err
	}
	if err := w.parquet.Close(); err != nil {
		return Made{}, err
	}
	info, err := w.file.Stat()
	if err != nil {
		return Made{}, err
	}
	w.made.Bytes, w.made.SHA256 = info.Size(), w.hash.Sum(nil)
	return w.made, nil
}

// keyOf is the key of the footer under which a typed file names what it was made of.
const keyOf = "kappactl.typed_of"

// identity names a version of the columns of an archive file.
func identity(of archive.FileRow, fingerprint string) string {
	return fmt.Sprintf("%s %s %x", fingerprint, of.Name, of.SHA256)
}

// columnWriter writes a Parquet column of one type.
type columnWriter[T any] interface {
	WriteBatch(values []T, definition, repetition []int16) (int64, error)
	Close() error
}

// writeValues writes the next column of a row group. levels are 1 for a value and 0 for NULL; nil: all are values.
func writeValues[T any](group file.SerialRowGroupWriter, values []T, levels []int16) error {
	next, err := group.NextColumn()
	if err != nil {
		return err
	}
	w, ok := next.(columnWriter[T])
	if !ok {
		return fmt.Errorf("a column is a %T", next)
	}
	_, err = w.WriteBatch(values, levels, nil)
	return errors.Join(err, w.Close())
}

// present are the values of an array that are not NULL, and a definition level for each of all.
func present[T any](a arrow.Array, value func(i int) T) ([]T, []int16) {
	values, levels := make([]T, 0, a.Len()), make([]int16, a.Len())
	for i := range levels {
		if a.IsValid(i) {
			values, levels[i] = append(values, value(i)), 1
		}
	}
	return values, levels
}
