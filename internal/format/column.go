package format

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// cell is one converted value before it is appended to a column.
type cell struct {
	null bool
	n    int64  // integers, times, floats by their bits, booleans, the low half of decimals
	hi   uint64 // the high half of decimals
	b    []byte // text, bytes, UUIDs; valid until the next record
}

// column collects the values of one field of a batch in Arrow's layout.
type column struct {
	typed
	length int
	nulls  int
	valid  []byte // bitmap, allocated at the first null
	data   []byte
	ends   []byte // of variable-length values: int64 offsets, or int32 ones for lists
	bits   byte   // of booleans: the bits of the current byte
	// The two columns of a list of headers.
	keys, values *column
}

func newColumn(t typed) *column {
	c := &column{typed: t}
	if t.kind == kindHeaders {
		c.keys, c.values = newColumn(typed{kind: kindText, arrow: arrow.BinaryTypes.LargeString}), newColumn(typed{
			kind: kindBytes, arrow: arrow.BinaryTypes.LargeBinary,
		})
	}
	c.restart()
	return c
}

// restart starts an empty batch with the capacity of the last one.
func (c *column) restart() {
	c.length, c.nulls, c.valid, c.bits = 0, 0, nil, 0
	c.data = make([]byte, 0, len(c.data)+len(c.data)/8)
	ends := make([]byte, 0, len(c.ends)+8)
	switch c.kind {
	case kindText, kindBytes, kindJSON:
		c.ends = binary.LittleEndian.AppendUint64(ends, 0)
	case kindHeaders:
		c.ends = binary.LittleEndian.AppendUint32(ends, 0)
		c.keys.restart()
		c.values.restart()
	default: // fixed width
	}
}

// size returns the number of bytes in the column.
func (c *column) size() int {
	n := len(c.data) + len(c.ends) + len(c.valid)
	if c.kind == kindHeaders {
		n += c.keys.size() + c.values.size()
	}
	return n
}

func (c *column) append(v *cell) {
	if v.null || c.valid != nil {
		c.mark(v.null)
	}
	c.length++
	n := uint64(v.n)
	switch c.kind {
	case kindInt64, kindFloat64, kindTime, kindTimestamp, kindTimestampTZ:
		c.data = binary.LittleEndian.AppendUint64(c.data, n)
	case kindText, kindBytes, kindJSON:
		if !v.null {
			c.data = append(c.data, v.b...)
		}
		c.ends = binary.LittleEndian.AppendUint64(c.ends, uint64(len(c.data)))
	case kindInt32, kindFloat32, kindDate:
		c.data = binary.LittleEndian.AppendUint32(c.data, uint32(n))
	case kindInt16:
		c.data = binary.LittleEndian.AppendUint16(c.data, uint16(n))
	case kindBool:
		c.appendBit(n & 1)
	case kindDecimal:
		c.data = binary.LittleEndian.AppendUint64(c.data, n)
		c.data = binary.LittleEndian.AppendUint64(c.data, v.hi)
	case kindUUID:
		if v.null {
			c.data = append(c.data, make([]byte, 16)...)
		} else {
			c.data = append(c.data, v.b...)
		}
	case kindHeaders: // ends the list that appendHeader has collected
		c.ends = binary.LittleEndian.AppendUint32(c.ends, uint32(c.keys.length))
	}
}

// appendHeader adds one header to the list that the next append ends. A nil value is NULL, an empty one is not.
func (c *column) appendHeader(key string, value []byte) {
	c.keys.append(&cell{b: []byte(key)})
	c.values.append(&cell{b: value, null: value == nil})
}

// mark records whether the next value is NULL.
func (c *column) mark(null bool) {
	if null && c.nulls == 0 {
		c.valid = make([]byte, c.length/8+1, max(cap(c.data)/8, 64))
		for i := range c.valid {
			c.valid[i] = 0xFF
		}
	}
	if c.valid != nil {
		if c.length/8 == len(c.valid) {
			c.valid = append(c.valid, 0xFF)
		}
		if null {
			c.valid[c.length/8] &^= 1 << (c.length % 8)
			c.nulls++
		}
	}
}

// appendBit packs booleans; mark has counted the value already.
func (c *column) appendBit(n uint64) {
	i := (c.length - 1) % 8
	if i == 0 {
		c.data = append(c.data, 0)
	}
	c.data[len(c.data)-1] |= byte(n) << i
}

// take returns the collected values as Arrow data and restarts.
func (c *column) take() arrow.ArrayData {
	buffers := []*memory.Buffer{nil}
	if c.nulls > 0 {
		buffers[0] = memory.NewBufferBytes(c.valid)
	}
	var children []arrow.ArrayData
	switch c.kind {
	case kindText, kindBytes, kindJSON:
		buffers = append(buffers, memory.NewBufferBytes(c.ends), memory.NewBufferBytes(c.data))
	case kindHeaders:
		buffers = append(buffers, memory.NewBufferBytes(c.ends))
		n := c.keys.length
		pair := []arrow.ArrayData{c.keys.take(), c.values.take()}
		children = append(children, array.NewData(headerType(), n, []*memory.Buffer{nil}, pair, 0, 0))
	default:
		buffers = append(buffers, memory.NewBufferBytes(c.data))
	}
	d := array.NewData(c.arrow, c.length, buffers, children, c.nulls, 0)
	c.restart()
	return d
}
