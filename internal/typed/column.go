package typed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// rows are the rows of a batch that are wanted: those of [from, to) without the rejected ones.
type rows struct {
	n        int // rows that are read of each column
	from, to int
	rejected []int // in rising order
}

// all reports whether every row is wanted.
func (r rows) all() bool { return r.from == 0 && r.to == r.n && len(r.rejected) == 0 }

// each calls f for each row that is wanted, with its number.
func (r rows) each(f func(row int)) {
	rejected := r.rejected
	for i := r.from; i < r.to; i++ {
		for len(rejected) > 0 && rejected[0] < i {
			rejected = rejected[1:]
		}
		if len(rejected) == 0 || rejected[0] != i {
			f(i)
		}
	}
}

// wanted is the number of rows that are wanted.
func (r rows) wanted() int {
	n := r.to - r.from
	for _, i := range r.rejected {
		if i >= r.from && i < r.to {
			n--
		}
	}
	return n
}

// columnReader reads a column of a row group as a field of a batch.
type columnReader interface {
	read(r rows) (arrow.ArrayData, error)
}

// newColumnReader returns the reader of a column as a field of type t.
func newColumnReader(c file.ColumnChunkReader, t arrow.DataType) (columnReader, error) {
	switch c := c.(type) {
	case *file.BooleanColumnChunkReader:
		return &fixed[bool]{batches: c, t: t, width: 1, put: func(to []byte, v bool) {
			if v {
				to[0] = 1
			}
		}}, nil
	case *file.Int32ColumnChunkReader:
		if t.ID() == arrow.INT16 {
			return &fixed[int32]{batches: c, t: t, width: 2, put: func(to []byte, v int32) {
				binary.LittleEndian.PutUint16(to, uint16(v)) //nolint:gosec // the column's values are of 16 bits
			}}, nil
		}
		return &fixed[int32]{batches: c, t: t, width: 4, cast: arrow.Int32Traits.CastToBytes}, nil
	case *file.Int64ColumnChunkReader:
		return &fixed[int64]{batches: c, t: t, width: 8, cast: arrow.Int64Traits.CastToBytes}, nil
	case *file.Float32ColumnChunkReader:
		return &fixed[float32]{batches: c, t: t, width: 4, cast: arrow.Float32Traits.CastToBytes}, nil
	case *file.Float64ColumnChunkReader:
		return &fixed[float64]{batches: c, t: t, width: 8, cast: arrow.Float64Traits.CastToBytes}, nil
	case *file.FixedLenByteArrayColumnChunkReader:
		put := func(to []byte, v parquet.FixedLenByteArray) { copy(to, v) }
		if t.ID() == arrow.DECIMAL128 {
			put = func(to []byte, v parquet.FixedLenByteArray) { copy(to, reversed(v)) }
		}
		return &fixed[parquet.FixedLenByteArray]{batches: c, t: t, width: 16, put: put, inPage: c.ReadBatchInPage}, nil
	case *file.ByteArrayColumnChunkReader:
		return &variable{c: c, t: t}, nil
	}
	return nil, fmt.Errorf("a column of type %s is stored as a %T", t, c)
}

// batches is a column of values of one type.
type batches[T any] interface {
	ReadBatch(rows int64, values []T, definition, repetition []int16) (total int64, found int, err error)
}

// fixed reads values of a fixed width. NULLs are zeros in the data, as DuckDB does not read them.
type fixed[T any] struct {
	batches[T]
	t     arrow.DataType
	width int
	cast  func([]T) []byte // the memory of values in Arrow's layout; nil: put copies each
	put   func(to []byte, v T)
	// inPage reads values that are in the memory of a page and must be copied before the next page is read; nil: they are
	// not.
	inPage func(rows int64, values []T, definition, repetition []int16) (total int64, found int, err error)
}

func (f *fixed[T]) read(r rows) (arrow.ArrayData, error) {
	values, levels := make([]T, r.n), make([]int16, r.n)
	raw, found, err := f.values(values, levels)
	if err != nil {
		return nil, err
	}
	var nulls nulls
	if found < r.n || !r.all() {
		raw = f.spread(raw, levels, r, &nulls)
	}
	if f.t.ID() == arrow.BOOL {
		raw = packed(raw)
	}
	n := r.wanted()
	return array.NewData(f.t, n, []*memory.Buffer{nulls.buffer(), memory.NewBufferBytes(raw)}, nil, nulls.count, 0), nil
}

// values reads n values and returns those that are not NULL in Arrow's layout.
func (f *fixed[T]) values(values []T, levels []int16) (raw []byte, found int, err error) {
	next := f.ReadBatch
	if f.inPage != nil {
		next = f.inPage
	}
	if f.cast == nil {
		raw = make([]byte, 0, len(levels)*f.width)
	}
	for at := 0; at < len(levels); {
		total, n, err := next(int64(len(levels)-at), values[found:], levels[at:], nil)
		if err != nil {
			return nil, 0, err
		}
		if total == 0 {
			return nil, 0, errShort
		}
		if f.cast == nil {
			for _, v := range values[found : found+n] {
				raw = append(raw, make([]byte, f.width)...)
				f.put(raw[len(raw)-f.width:], v)
			}
		}
		at, found = at+int(total), found+n
	}
	if f.cast != nil {
		raw = f.cast(values[:found])
	}
	return raw, found, nil
}

// spread puts the values that are wanted in their places.
func (f *fixed[T]) spread(raw []byte, levels []int16, r rows, nulls *nulls) []byte {
	place := make([]int, len(levels)) // of each row's value in raw
	at := 0
	for i, l := range levels {
		if place[i] = at; l == 1 {
			at += f.width
		}
	}
	out := make([]byte, 0, r.wanted()*f.width)
	r.each(func(row int) {
		if levels[row] != 1 {
			nulls.add(len(out)/f.width, r)
			out = append(out, make([]byte, f.width)...)
			return
		}
		out = append(out, raw[place[row]:place[row]+f.width]...)
	})
	return out
}

// packed are booleans as bits.
func packed(bytes []byte) []byte {
	out := make([]byte, (len(bytes)+7)/8)
	for i, b := range bytes {
		out[i/8] |= b << (i % 8)
	}
	return out
}

// nulls is the validity bitmap of a column, allocated at the first NULL.
type nulls struct {
	bits  []byte
	count int
}

func (n *nulls) add(at int, r rows) {
	if n.bits == nil {
		n.bits = make([]byte, (r.n+7)/8)
		for i := range n.bits {
			n.bits[i] = 0xFF
		}
	}
	n.bits[at/8] &^= 1 << (at % 8)
	n.count++
}

func (n *nulls) buffer() *memory.Buffer {
	if n.bits == nil {
		return nil
	}
	return memory.NewBufferBytes(n.bits)
}

// variable reads text and bytes.
type variable struct {
	c *file.ByteArrayColumnChunkReader
	t arrow.DataType

	found  []parquet.ByteArray
	levels []int16
	last   int // bytes of the last batch
}

func (v *variable) read(r rows) (arrow.ArrayData, error) {
	ends := make([]byte, 0, 8*(r.n+1))
	ends = binary.LittleEndian.AppendUint64(ends, 0)
	data := make([]byte, 0, v.last+v.last/8)
	var nulls nulls
	rejected := r.rejected
	err := v.each(r.n, func(row int, value parquet.ByteArray, present bool) {
		for len(rejected) > 0 && rejected[0] < row {
			rejected = rejected[1:]
		}
		if row < r.from || row >= r.to || len(rejected) > 0 && rejected[0] == row {
			return
		}
		if !present {
			nulls.add(len(ends)/8-1, r)
		}
		data = append(data, value...)
		ends = binary.LittleEndian.AppendUint64(ends, uint64(len(data)))
	})
	if err != nil {
		return nil, err
	}
	v.last = len(data)
	buffers := []*memory.Buffer{nulls.buffer(), memory.NewBufferBytes(ends), memory.NewBufferBytes(data)}
	return array.NewData(v.t, len(ends)/8-1, buffers, nil, nulls.count, 0), nil
}

// each calls f with the next n values, which are valid during the call.
func (v *variable) each(n int, f func(row int, value parquet.ByteArray, present bool)) error {
	if cap(v.found) < n {
		v.found, v.levels = make([]parquet.ByteArray, n), make([]int16, n)
	}
	for row := 0; row < n; {
		total, _, err := v.c.ReadBatchInPage(int64(n-row), v.found[:n-row], v.levels[:n-row], nil)
		if err != nil {
			return err
		}
		if total == 0 {
			return errShort
		}
		at := 0
		for _, l := range v.levels[:total] {
			if l == 1 {
				f(row, v.found[at], true)
				at++
			} else {
				f(row, nil, false)
			}
			row++
		}
	}
	return nil
}

// readNumbers reads numbers of a column without NULLs.
func readNumbers(c *file.Int64ColumnChunkReader, into []int64) error {
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

var errShort = errors.Join(errors.New("a column of the file has fewer values than its row group"), io.ErrUnexpectedEOF)
