package format

import (
	"bytes"
	"unicode/utf8"
)

// csvReader reads values that are one row of RFC 4180, with the fields in the order of the declared columns. An empty
// unquoted field is NULL; an empty quoted field is an empty text.
type csvReader struct {
	types []typed
	names []string
	spans []span
	plain []byte   // the fields of the current row, unquoted
	check *scanner // for numbers and JSON
}

func newCSVReader(types []typed, names []string) *csvReader {
	return &csvReader{types: types, names: names, spans: make([]span, len(types)), check: newScanner(nil)}
}

func (c *csvReader) read(value []byte) ([]byte, []span, *Reject) {
	if !utf8.Valid(value) {
		return nil, nil, framed(value, reject(InvalidUTF8, "the value is not UTF-8"))
	}
	row := bytes.TrimSuffix(bytes.TrimSuffix(withoutMark(value), []byte("\n")), []byte("\r"))
	c.plain = c.plain[:0]
	for i := range c.types {
		v, rest, r := c.field(row)
		if r != nil {
			return nil, nil, framed(value, r)
		}
		if c.spans[i], r = c.typed(c.types[i], v); r != nil {
			return nil, nil, r.of(c.names[i], &c.types[i], '"')
		}
		switch last := i == len(c.types)-1; {
		case last && len(rest) > 0:
			return nil, nil, reject(NotCSV, "more than %d fields: %s", len(c.types), excerpt(rest))
		case !last && len(rest) == 0:
			return nil, nil, framed(value, reject(NotCSV, "%d of %d fields", i+1, len(c.types)))
		case !last:
			row = rest[1:]
		}
	}
	return c.plain, c.spans, nil
}

// field removes the first field from a row. It returns the field's span in plain and the rest of the row, which starts
// with a comma.
func (c *csvReader) field(row []byte) (v span, rest []byte, r *Reject) {
	v.from = len(c.plain)
	if len(row) == 0 || row[0] != '"' {
		end := bytes.IndexByte(row, ',')
		if end < 0 {
			end = len(row)
		}
		if i := bytes.IndexAny(row[:end], "\"\r\n"); i >= 0 {
			return v, nil, reject(NotCSV, "a quote or the end of a line inside a field without quotes: %s", excerpt(row[:end]))
		}
		c.plain = append(c.plain, row[:end]...)
		if v.to = len(c.plain); v.to > v.from {
			v.kind = '"'
		}
		return v, row[end:], nil
	}
	for rest = row[1:]; ; {
		end := bytes.IndexByte(rest, '"')
		if end < 0 {
			return v, nil, reject(NotCSV, "a field without its closing quote: %s", excerpt(row))
		}
		c.plain = append(c.plain, rest[:end]...)
		if rest = rest[end+1:]; len(rest) == 0 || rest[0] != '"' {
			break
		}
		c.plain = append(c.plain, '"')
		rest = rest[1:]
	}
	if len(rest) > 0 && rest[0] != ',' {
		return v, nil, reject(NotCSV, "something follows a closing quote: %s", excerpt(rest))
	}
	v.kind, v.to = '"', len(c.plain)
	return v, rest, nil
}

// typed assigns the kind that the column's type expects, because CSV text has none.
func (c *csvReader) typed(t typed, v span) (span, *Reject) {
	if v.kind == 0 {
		return v, nil
	}
	text := c.plain[v.from:v.to]
	switch t.kind {
	case kindInt16, kindInt32, kindInt64, kindFloat32, kindFloat64, kindDecimal:
		return c.number(v, text)
	case kindTimestamp, kindTimestampTZ:
		if t.epoch {
			return c.number(v, text)
		}
	case kindBool:
		switch string(text) {
		case "true", "t":
			v.kind = 't'
		case "false", "f":
			v.kind = 'f'
		default:
			return v, reject(BadValue, "%s is not true or false", excerpt(text))
		}
	case kindJSON:
		whole, r := c.check.whole(text)
		whole.from, whole.to = whole.from+v.from, whole.to+v.from
		if r != nil {
			r.Reason = BadValue
		}
		return whole, r
	case kindText, kindBytes, kindDate, kindTime, kindUUID:
		return plainText(c.plain, v)
	case kindHeaders: // never declared
	}
	return v, nil
}

// number requires a number in JSON's syntax.
func (c *csvReader) number(v span, text []byte) (span, *Reject) {
	n, r := c.check.whole(text)
	if r != nil || n.kind != '0' || n.to-n.from != len(text) {
		return v, reject(BadValue, "%s is not a number", excerpt(text))
	}
	v.kind = '0'
	return v, nil
}
