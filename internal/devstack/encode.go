package devstack

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// encoder writes rows of Arrow columns as JSON objects.
type encoder struct {
	columns []column
	heads   [][]byte // {"a": or ,"b": before each value
	key     int      // column of the key, -1 = none
	average int      // bytes of a row so far, to size the next buffer
}

func newEncoder(columns []column, key int) *encoder {
	e := &encoder{columns: columns, key: key, average: 32 * len(columns)}
	for i, c := range columns {
		head := []byte{','}
		if i == 0 {
			head = []byte{'{'}
		}
		head = append(appendText(head, c.name), ':')
		e.heads = append(e.heads, head)
	}
	return e
}

// appender appends the value of one row.
type appender func(dst []byte, row int) []byte

// rows encodes a batch. All rows share one buffer: a batch is one allocation.
func (e *encoder) rows(batch arrow.RecordBatch) ([]row, error) {
	appenders := make([]appender, len(e.columns))
	for i, c := range e.columns {
		var err error
		if appenders[i], err = appenderOf(batch.Column(i), c); err != nil {
			return nil, err
		}
	}
	n := int(batch.NumRows())
	out, ends := make([]row, n), make([]int, n)
	buf := make([]byte, 0, n*(e.average+e.average/8))
	for r := range n {
		for i, write := range appenders {
			buf = append(buf, e.heads[i]...)
			if column := batch.Column(i); column.IsNull(r) {
				buf = append(buf, "null"...)
			} else {
				buf = write(buf, r)
			}
		}
		buf = append(buf, '}')
		ends[r] = len(buf)
	}
	start := 0
	for r, end := range ends {
		out[r].value = buf[start:end:end]
		start = end
	}
	if e.key >= 0 {
		if err := e.keys(batch.Column(e.key), appenders[e.key], out); err != nil {
			return nil, err
		}
	}
	e.average = len(buf)/max(n, 1) + 1
	return out, nil
}

func (e *encoder) keys(column arrow.Array, write appender, out []row) error {
	for r := range out {
		if column.IsNull(r) {
			continue
		}
		var err error
		if out[r].key, err = keyOf(json.RawMessage(write(nil, r))); err != nil {
			return err
		}
	}
	return nil
}

func appenderOf(values arrow.Array, c column) (appender, error) {
	switch a := values.(type) {
	case array.StringLike:
		if c.form == asJSON {
			return func(dst []byte, row int) []byte { return append(dst, a.Value(row)...) }, nil
		}
		return func(dst []byte, row int) []byte { return appendText(dst, a.Value(row)) }, nil
	case *array.Boolean:
		return func(dst []byte, row int) []byte { return strconv.AppendBool(dst, a.Value(row)) }, nil
	case *array.Int64:
		return func(dst []byte, row int) []byte { return strconv.AppendInt(dst, a.Value(row), 10) }, nil
	case *array.Float64:
		return func(dst []byte, row int) []byte { return appendFloat(dst, a.Value(row), 64) }, nil
	case *array.Float32:
		return func(dst []byte, row int) []byte { return appendFloat(dst, float64(a.Value(row)), 32) }, nil
	case *array.Timestamp:
		kind, ok := a.DataType().(*arrow.TimestampType)
		if ok && kind.Unit == arrow.Microsecond {
			return func(dst []byte, row int) []byte { return appendTime(dst, int64(a.Value(row)), kind.TimeZone != "") }, nil
		}
	}
	return nil, fmt.Errorf("column %s: type %s is not known", c.name, values.DataType())
}

// appendFloat writes the shortest decimal that reads back as the same number; what JSON has no number for is a string,
// in the words that PostgreSQL reads.
func appendFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(dst, f, 'e', -1, bits)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, bits)
}

// appendTime writes microseconds since 1970 in ISO 8601, with Z when they are a moment and not a wall clock's time.
func appendTime(dst []byte, micros int64, moment bool) []byte {
	switch micros {
	case math.MaxInt64:
		return append(dst, `"infinity"`...)
	case -math.MaxInt64:
		return append(dst, `"-infinity"`...)
	}
	dst = append(dst, '"')
	dst = time.UnixMicro(micros).UTC().AppendFormat(dst, "2006-01-02T15:04:05.999999")
	if moment {
		dst = append(dst, 'Z')
	}
	return append(dst, '"')
}

const hexDigits = "0123456789abcdef"

// appendText writes a JSON string.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		start = i + 1
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
