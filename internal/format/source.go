package format

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/kappactl/kappactl/internal/job"
)

// reader finds the declared columns in a record's value. It returns one span per column and the bytes that the spans
// refer to; both are valid until the next record.
type reader interface {
	read(value []byte) (in []byte, spans []span, r *Reject)
}

// readerOf returns the reader for a source's format.
func readerOf(src job.Source, types []typed, names []string) (reader, error) {
	switch src.Format {
	case "json":
		places := make([][]job.Step, len(src.Columns))
		for i, c := range src.Columns {
			var err error
			if places[i], err = c.Steps(); err != nil {
				return nil, fmt.Errorf("column %s: %w", c.Name, err)
			}
		}
		return &jsonReader{newScanner(places), names}, nil
	case "csv":
		return newCSVReader(types, names), nil
	case "raw":
		if len(types) != 1 {
			return nil, fmt.Errorf("format raw requires one column, not %s", strings.Join(names, ", "))
		}
		switch types[0].kind { //nolint:exhaustive // the kinds that take any bytes or text
		case kindText, kindBytes, kindJSON:
			return &rawReader{t: types[0], name: names[0], json: newScanner(nil)}, nil
		}
		return nil, fmt.Errorf("format raw requires a column of type text, bytea, json or jsonb, not %s", src.Columns[0].Type)
	}
	return nil, fmt.Errorf("format %q cannot be decoded", src.Format)
}

// jsonReader reads values that are JSON objects.
type jsonReader struct {
	scanner *scanner
	names   []string
}

func (j *jsonReader) read(value []byte) ([]byte, []span, *Reject) {
	value = withoutMark(value)
	r := j.scanner.read(value)
	if r == nil && len(j.scanner.strays) > 0 {
		var column int
		if column, r = j.scanner.judgeStrays(); r != nil {
			r.Column = j.names[column]
		}
	}
	return value, j.scanner.spans, framed(value, r)
}

// rawReader assigns the whole value to one column.
type rawReader struct {
	t    typed
	name string
	json *scanner
	one  [1]span
}

func (w *rawReader) read(value []byte) ([]byte, []span, *Reject) {
	w.one[0] = span{kind: kindOfBytes, to: len(value)}
	if w.t.kind == kindBytes {
		return value, w.one[:], nil
	}
	if !utf8.Valid(value) {
		return nil, nil, framed(value, reject(InvalidUTF8, "the value is not UTF-8"))
	}
	var r *Reject
	if w.t.kind == kindJSON {
		value = withoutMark(value)
		w.one[0], r = w.json.whole(value)
	} else {
		w.one[0], r = plainText(value, span{kind: '"', to: len(value)})
	}
	if r != nil {
		r.Column = w.name
	}
	return value, w.one[:], framed(value, r)
}

// kindOfBytes is the kind of a span that holds the raw bytes of a bytea.
const kindOfBytes = 'b'

// plainText rejects characters that PostgreSQL cannot store.
func plainText(b []byte, v span) (span, *Reject) {
	if bytes.IndexByte(b[v.from:v.to], 0) >= 0 {
		return v, reject(NUL, "a NUL character in %s", excerpt(b[v.from:v.to]))
	}
	return v, nil
}

// whole reads one JSON value of any kind that spans all of b, and returns its position.
func (s *scanner) whole(b []byte) (v span, r *Reject) {
	s.b, s.i, s.ascii = b, 0, 0
	s.space()
	if r = s.keep(&v, 1); r != nil {
		return v, r
	}
	return v, s.end()
}
