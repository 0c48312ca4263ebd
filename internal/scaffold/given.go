package scaffold

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// text is the value of a record, JSON in its shortest form.
func text(r *kgo.Record) []byte {
	value := bytes.TrimPrefix(r.Value, []byte("\ufeff"))
	var b bytes.Buffer
	if json.Compact(&b, value) == nil {
		return b.Bytes()
	}
	return value
}

// record is a record as a test gives it.
func (d *draft) record(r *kgo.Record, p plan) job.Given {
	value := string(text(r))
	if d.Mask {
		value = d.masked(value)
	}
	g := job.GivenValue(value)
	if p.recordTime {
		at := r.Timestamp.UTC().Truncate(time.Millisecond)
		if at.UnixMilli() < 0 {
			return g
		}
		g.Timestamp = &at
	}
	return g
}

// masked replaces letters and digits of a record's value, but for times, booleans and the names of fields.
func (d *draft) masked(value string) string {
	switch {
	case d.source.Format == "csv":
		return d.maskRow(value)
	case !json.Valid([]byte(value)):
		return maskText(value)
	}
	var b strings.Builder
	d.mask(&b, json.RawMessage(value), nil, false)
	return b.String()
}

// mask writes a masked JSON value. inside is set below a jsonb column, where names may be data too.
func (d *draft) mask(b *strings.Builder, raw json.RawMessage, path []job.Step, inside bool) {
	raw = bytes.TrimSpace(raw)
	at := slices.IndexFunc(d.columns, func(c *column) bool { return len(path) > 0 && slices.Equal(c.path, path) })
	declared := at >= 0
	inside = inside || d.source.Format == "raw" || declared && d.columns[at].label == jsonb.typ
	switch {
	case len(raw) == 0:
	case raw[0] == '{':
		d.maskObject(b, raw, path, inside)
	case raw[0] == '[':
		d.maskList(b, raw, path)
	case raw[0] == 'n', raw[0] == 't', raw[0] == 'f':
		b.Write(raw)
	case declared && slices.Contains([]string{"timestamptz", "date", "time"}, d.columns[at].label):
		b.Write(raw)
	case raw[0] == '"':
		var s string
		if json.Unmarshal(raw, &s) == nil {
			writeJSON(b, maskText(s))
		}
	default:
		b.WriteString(maskNumber(string(raw)))
	}
}

func (d *draft) maskObject(b *strings.Builder, raw json.RawMessage, path []job.Step, inside bool) {
	b.WriteByte('{')
	first := true
	_ = members(raw, func(name string, value json.RawMessage) error { // it was read before
		if !first {
			b.WriteByte(',')
		}
		first = false
		below := append(append([]job.Step{}, path...), job.Step{Name: name, Index: -1})
		if inside {
			name = maskText(name)
		}
		writeJSON(b, name)
		b.WriteByte(':')
		d.mask(b, value, below, inside)
		return nil
	})
	b.WriteByte('}')
}

func (d *draft) maskList(b *strings.Builder, raw json.RawMessage, path []job.Step) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		items = nil
	}
	b.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		d.mask(b, item, append(append([]job.Step{}, path...), job.Step{Index: i}), true)
	}
	b.WriteByte(']')
}

func writeJSON(b *strings.Builder, s string) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(s) == nil {
		b.Write(bytes.TrimSpace(out.Bytes()))
	}
}

// maskText keeps length and punctuation. Letters that hexadecimal numbers have become a, so that a UUID stays one.
func maskText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsDigit(r):
			return '1'
		case r >= 'a' && r <= 'f', r >= 'A' && r <= 'F':
			return 'a'
		case unicode.IsLetter(r):
			return 'x'
		case unicode.IsControl(r) || r > unicode.MaxASCII:
			return '?'
		}
		return r
	}, s)
}

// maskNumber keeps sign, decimal point and exponent.
func maskNumber(s string) string {
	mantissa, exponent := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i:]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return '1'
		}
		return r
	}, mantissa) + exponent
}
