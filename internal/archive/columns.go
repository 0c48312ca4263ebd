package archive

import (
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/twmb/franz-go/pkg/kgo"
)

// columns are records in memory, by column: the next row group of a file. Its bytes are copies, so that the answers of
// brokers that they came from are free at once.
type columns struct {
	offsets, timestamps []int64
	types               []int32
	key, value          byteColumn
	headerKey           byteColumn // a definition level of 1 is a header, 0 a record without headers
	headerValue         byteColumn // 2 is a value, 1 a header with none, 0 a record without headers
	repeated            []int16    // 1: a further header of the record before
}

// byteColumn holds the values that are not null one behind another, and a definition level for each of the values.
type byteColumn struct {
	data   []byte
	ends   []int // of each value in data
	levels []int16
}

func (c *byteColumn) add(v []byte, present, absent int16) {
	if v == nil {
		c.levels = append(c.levels, absent)
		return
	}
	c.data = append(c.data, v...)
	c.ends = append(c.ends, len(c.data))
	c.levels = append(c.levels, present)
}

// values lists the values that are not null.
func (c *byteColumn) values() []parquet.ByteArray {
	out := make([]parquet.ByteArray, len(c.ends))
	from := 0
	for i, to := range c.ends {
		out[i] = c.data[from:to:to]
		from = to
	}
	return out
}

// size is the memory in use, in bytes.
func (c *byteColumn) size() int { return len(c.data) + 8*len(c.ends) + 2*len(c.levels) }

func (c *columns) add(r *kgo.Record) {
	c.offsets = append(c.offsets, r.Offset)
	c.timestamps = append(c.timestamps, r.Timestamp.UnixMilli())
	c.types = append(c.types, int32(r.Attrs.TimestampType()))
	c.key.add(r.Key, 1, 0)
	c.value.add(r.Value, 1, 0)
	if len(r.Headers) == 0 {
		c.headerKey.add(nil, 1, 0)
		c.headerValue.add(nil, 2, 0)
		c.repeated = append(c.repeated, 0)
		return
	}
	for i, h := range r.Headers {
		c.headerKey.add(append([]byte{}, h.Key...), 1, 0)
		c.headerValue.add(h.Value, 2, 1)
		c.repeated = append(c.repeated, int16(min(i, 1))) //nolint:gosec // 0 or 1
	}
}

func (c *columns) size() int {
	return 20*len(c.offsets) + c.key.size() + c.value.size() + c.headerKey.size() + c.headerValue.size() +
		2*len(c.repeated)
}
