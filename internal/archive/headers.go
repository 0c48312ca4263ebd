package archive

import (
	"errors"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/twmb/franz-go/pkg/kgo"
)

// headerReader reads the headers of records: two columns with the same levels of repetition.
type headerReader struct {
	keys, values *file.ByteArrayColumnChunkReader

	// What is read and not yet given to a record.
	key, value [][]byte
	none       []bool // a record without headers
	further    []bool // of the record before
}

func newHeaderReader(keys, values file.ColumnChunkReader) (*headerReader, error) {
	k, ok1 := keys.(*file.ByteArrayColumnChunkReader)
	v, ok2 := values.(*file.ByteArrayColumnChunkReader)
	if !ok1 || !ok2 {
		return nil, errors.New("the file has headers of another type than a file of the archive")
	}
	return &headerReader{keys: k, values: v}, nil
}

// read fills in the headers of the next records.
func (h *headerReader) read(records []*kgo.Record) error {
	for _, r := range records {
		for first := true; ; first = false {
			if len(h.none) == 0 {
				if err := h.fill(); err != nil {
					return err
				}
			}
			if len(h.none) == 0 && !first {
				break // of the last record
			}
			if len(h.none) == 0 {
				return errShort
			}
			if h.further[0] == first {
				if first {
					return errors.New("the file's headers do not begin with a record")
				}
				break
			}
			if !h.none[0] {
				r.Headers = append(r.Headers, kgo.RecordHeader{Key: string(h.key[0]), Value: h.value[0]})
			}
			h.key, h.value, h.none, h.further = h.key[1:], h.value[1:], h.none[1:], h.further[1:]
		}
	}
	return nil
}

// fill reads some more; nothing at the end of the row group.
func (h *headerReader) fill() error {
	key, levels, repeated, err := h.column(h.keys, batchRows, 1)
	if err != nil || len(levels) == 0 {
		return err
	}
	var value [][]byte
	for len(value) < len(key) {
		more, some, _, err := h.column(h.values, len(key)-len(value), 2)
		if err != nil {
			return err
		}
		if len(some) == 0 {
			return errShort
		}
		value = append(value, more...)
	}
	h.key, h.value = key, value
	h.none, h.further = make([]bool, len(levels)), make([]bool, len(levels))
	for i, l := range levels {
		h.none[i], h.further[i] = l == 0, repeated[i] == 1
	}
	return nil
}

// column reads up to n levels of a column with the values that they have.
func (h *headerReader) column(c *file.ByteArrayColumnChunkReader, n int, present int16) (_ [][]byte, levels,
	repeated []int16, err error,
) {
	found := make([]parquet.ByteArray, n)
	levels, repeated = make([]int16, n), make([]int16, n)
	total, values, err := c.ReadBatchInPage(int64(n), found, levels, repeated)
	if err != nil {
		return nil, nil, nil, err
	}
	return spread(nil, found[:values], levels[:total], present), levels[:total], repeated[:total], nil
}
