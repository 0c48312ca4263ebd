package format

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/kappactl/kappactl/internal/job"
)

// reader finds the declared columns in a record's value. The spans, one a column, stand in the bytes that it returns; both
// are good until the next record.
type reader interface {
	read(value []byte) (in []byte, spans []span, r *Reject)
}

// readerOf is the reader of a source's format.
func readerOf(src job.Source, types []typed, names []string) (reader, error) {
	switch src.Format {
	case "json":
		return &jsonReader{newScanner(names)}, nil
	case "csv":
		return newCSVReader(types, names), nil
	case "raw":
		if len(types) != 1 {
			return nil, fmt.Errorf("format raw wants one column, not %s", strings.Join(names, ", "))
		}
		switch types[0].kind { //nolint:exhaustive // the kinds that take any bytes or text
		case kindText, kindBytes, kindJSON:
			return &rawReader{t: types[0], name: names[0], json: newScanner(nil)}, nil
		}
		return nil, fmt.Errorf("format raw wants a column of type text, bytea, json or jsonb, not %s", src.Columns[0].Type)
	}
	return nil, fmt.Errorf("format %q cannot be decoded", src.Format)
}

// jsonReader reads values that are JSON objects.
type jsonReader struct{ scanner *scanner }

func (j *jsonReader) read(value []byte) ([]byte, []span, *Reject) {
	r := j.scanner.scan(value)
	return value, j.scanner.spans, r
}

// rawReader gives the whole value to one column.
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
		return nil, nil, reject(InvalidUTF8, "the value is not UTF-8")
	}
	var r *Reject
	if w.t.kind == kindJSON {
		w.one[0], r = w.json.whole(value)
	} else {
		w.one[0], r = plainText(value, span{kind: '"', to: len(value)})
	}
	if r != nil {
		r.Column = w.name
	}
	return value, w.one[:], r
}

// kindOfBytes is the kind of a span that holds the bytes of a bytea as they are.
const kindOfBytes = 'b'

// plainText refuses characters that PostgreSQL cannot store.
func plainText(b []byte, v span) (span, *Reject) {
	if bytes.IndexByte(b[v.from:v.to], 0) >= 0 {
		return v, reject(NUL, "a NUL character in %s", excerpt(b[v.from:v.to]))
	}
	return v, nil
}

// whole reads one JSON value of any kind that is all of b, and says where it stands.
func (s *scanner) whole(b []byte) (v span, r *Reject) {
	s.b, s.i, s.ascii = b, 0, 0
	s.space()
	if r = s.keep(&v); r != nil {
		return v, r
	}
	return v, s.end()
}
