package format

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// converter converts the span of one column into a cell. Its scratch memory is valid for one record.
type converter struct {
	arena []byte
	names nameSets
	date  [10]byte // the last one, as it was written
	day   int      // and its day: times that follow one another often have the same date
}

func (c *converter) reset() { c.arena = c.arena[:0] }

// convert converts v, a span of the record value b. A missing field and a JSON null become NULL.
func (c *converter) convert(t *typed, b []byte, v span, out *cell) *Reject {
	out.null = false // the column's kind sets the rest; clearing a pointer costs more than the conversion
	if v.kind == 0 || v.kind == 'n' {
		out.null = true
		return nil
	}
	raw := b[v.from:v.to]
	switch t.kind {
	case kindText:
		return c.text(t, raw, v, out)
	case kindInt16, kindInt32, kindInt64:
		return integerCell(t, raw, v, out)
	case kindTimestamp, kindTimestampTZ:
		return c.timestamp(t, raw, v, out)
	case kindFloat32, kindFloat64:
		return c.float(t, raw, v, out)
	case kindDecimal:
		return decimalCell(t, raw, v, out)
	case kindBool:
		if v.kind != 't' && v.kind != 'f' {
			return wrong("true or false", raw, v)
		}
		out.n = 0
		if v.kind == 't' {
			out.n = 1
		}
		return nil
	case kindJSON:
		return c.json(b, v, out)
	case kindBytes, kindDate, kindTime, kindUUID:
		return c.fromString(t, raw, v, out)
	case kindHeaders: // never declared
	}
	return wrong("a known type", raw, v)
}

func wrong(want string, raw []byte, v span) *Reject {
	return reject(WrongType, "want %s, got %s", want, shown(raw, v))
}

// shown returns how a detail shows a value.
func shown(raw []byte, v span) string {
	switch v.kind {
	case '"':
		return "the string " + excerpt(raw)
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '0':
		return "the number " + string(raw[:min(len(raw), 40)])
	}
	return string(raw) // true, false
}

// str returns the characters of a string.
func (c *converter) str(raw []byte, v span) ([]byte, *Reject) {
	if !v.escaped {
		return raw, nil
	}
	from := len(c.arena)
	var ok bool
	if c.arena, ok = unescape(c.arena, raw); !ok {
		return nil, reject(InvalidUTF8, "half of a surrogate pair in %s", excerpt(raw))
	}
	s := c.arena[from:]
	for _, b := range s {
		if b == 0 {
			return nil, reject(NUL, "a NUL character in %s", excerpt(raw))
		}
	}
	return s, nil
}

func (c *converter) text(t *typed, raw []byte, v span, out *cell) (r *Reject) {
	if v.kind != '"' {
		return wrong("a string", raw, v)
	}
	if out.b, r = c.str(raw, v); r != nil {
		return r
	}
	if t.length > 0 && len(out.b) > t.length {
		if n := utf8.RuneCount(out.b); n > t.length {
			return reject(OutOfRange, "%d characters, more than %d", n, t.length)
		}
	}
	return nil
}

func integerCell(t *typed, raw []byte, v span, out *cell) *Reject {
	if v.kind != '0' {
		return wrong("a number", raw, v)
	}
	n, err := integer(raw)
	switch {
	case err != nil && errors.Is(err, errTooManyDigits):
		return reject(WrongType, "want a whole number, got %s", excerpt(raw))
	case err != nil,
		t.kind == kindInt16 && n != int64(int16(n)),
		t.kind == kindInt32 && n != int64(int32(n)):
		return reject(OutOfRange, "%s is out of range", excerpt(raw))
	}
	out.n = n
	return nil
}

func (c *converter) float(t *typed, raw []byte, v span, out *cell) *Reject {
	size := 64
	if t.kind == kindFloat32 {
		size = 32
	}
	f, err := 0.0, error(nil)
	switch v.kind {
	case '0':
		// keeps no reference if it succeeds
		f, err = strconv.ParseFloat(unsafe.String(unsafe.SliceData(raw), len(raw)), size)
	case '"':
		var r *Reject
		if f, r = c.notFinite(raw, v); r != nil {
			return r
		}
	default:
		return wrong("a number", raw, v)
	}
	if err != nil {
		return reject(OutOfRange, "%s is out of range", excerpt(raw))
	}
	if size == 32 {
		out.n = int64(math.Float32bits(float32(f)))
	} else {
		out.n = int64(math.Float64bits(f))
	}
	return nil
}

// notFinite parses the strings that represent values for which JSON has no number, in PostgreSQL's spelling.
func (c *converter) notFinite(raw []byte, v span) (float64, *Reject) {
	s, r := c.str(raw, v)
	if r != nil {
		return 0, r
	}
	switch string(s) {
	case "NaN":
		return math.NaN(), nil
	case "Infinity":
		return math.Inf(1), nil
	case "-Infinity":
		return math.Inf(-1), nil
	}
	return 0, wrong("a number", raw, v)
}

func decimalCell(t *typed, raw []byte, v span, out *cell) *Reject {
	if v.kind != '0' {
		return wrong("a number", raw, v)
	}
	hi, lo, err := decimal(raw, t.precision, t.scale)
	if err != nil {
		return reject(OutOfRange, "%s: %v, for numeric(%d,%d)", excerpt(raw), err, t.precision, t.scale)
	}
	out.hi, out.n = hi, int64(lo)
	return nil
}

func (c *converter) timestamp(t *typed, raw []byte, v span, out *cell) *Reject {
	if t.epoch {
		if v.kind != '0' {
			return wrong("an epoch number, as the column has a unit", raw, v)
		}
		n, err := epoch(raw, t.micros)
		if err != nil || !inRange(n) {
			return reject(OutOfRange, "%s is outside the years 0001 to 9999", excerpt(raw))
		}
		out.n = n
		return nil
	}
	if v.kind != '"' {
		return wrong("a string such as 2026-01-31T10:00:00Z", raw, v)
	}
	s, r := c.str(raw, v)
	if r != nil {
		return r
	}
	n, ok := c.instant(s)
	switch {
	case !ok:
		return reject(BadValue, "%s is not an ISO 8601 time", excerpt(s))
	case !inRange(n):
		return reject(OutOfRange, "%s is outside the years 0001 to 9999", excerpt(s))
	}
	out.n = n
	return nil
}

// instant is the function of that name.
func (c *converter) instant(b []byte) (int64, bool) {
	if len(b) < len(c.date) {
		return 0, false
	}
	if text := [10]byte(b); text != c.date || c.date[0] == 0 {
		day, ok := date(b)
		if !ok {
			return 0, false
		}
		c.date, c.day = text, day
	}
	return instantOn(c.day, b)
}

// fromString converts the types that are always strings in JSON.
func (c *converter) fromString(t *typed, raw []byte, v span, out *cell) *Reject {
	if v.kind == kindOfBytes {
		out.b = raw
		return nil
	}
	if v.kind != '"' {
		return wrong("a string", raw, v)
	}
	s, r := c.str(raw, v)
	if r != nil {
		return r
	}
	switch t.kind {
	case kindDate:
		n, ok := date(s)
		if !ok || len(s) != 10 {
			return reject(BadValue, "%s is not a date such as 2026-01-31", excerpt(s))
		}
		out.n = int64(n)
	case kindTime:
		n, size, ok := clock(s)
		if !ok || size != len(s) || n >= microsPerDay {
			return reject(BadValue, "%s is not a time such as 10:00:00", excerpt(s))
		}
		out.n = n
	case kindUUID:
		if out.b, r = c.uuid(s); r != nil {
			return r
		}
	default:
		from := len(c.arena)
		var err error
		if c.arena, err = base64.StdEncoding.Strict().AppendDecode(c.arena, s); err != nil {
			return reject(BadValue, "%s is not base64", excerpt(s))
		}
		out.b = c.arena[from:]
	}
	return nil
}

// uuid parses 32 hexadecimal digits, with or without hyphens in the usual places.
func (c *converter) uuid(s []byte) ([]byte, *Reject) {
	var plain [32]byte
	switch {
	case len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-':
		for i, part := range [...][2]int{{0, 8}, {9, 13}, {14, 18}, {19, 23}, {24, 36}} {
			copy(plain[part[0]-i:], s[part[0]:part[1]])
		}
	case len(s) == 32:
		copy(plain[:], s)
	default:
		return nil, reject(BadValue, "%s is not a UUID", excerpt(s))
	}
	from := len(c.arena)
	c.arena = append(c.arena, plain[:16]...)
	out := c.arena[from:]
	if _, err := hex.Decode(out, plain[:]); err != nil {
		return nil, reject(BadValue, "%s is not a UUID", excerpt(s))
	}
	return out, nil
}
