package format

import "unicode/utf8"

// maxDepth bounds how deep values may be nested: deeper ones are refused rather than followed.
const maxDepth = 512

// maxLearned bounds how many field positions a scanner remembers.
const maxLearned = 256

// span is where a value stands in the record: its kind is the first byte ('"', '{', '[', 't', 'f', 'n', or '0' for numbers),
// 0 when the field is missing. A string's span is without the quotes.
type span struct {
	kind    byte
	escaped bool // a string with escapes in it
	from    int
	to      int
}

// scanner validates a record value in one pass and notes where the declared fields stand. It is strict RFC 8259.
type scanner struct {
	b     []byte
	i     int
	ascii uint64 // all bytes seen, or-ed: its high bits say whether there are others than ASCII

	names   map[string]int // declared fields
	spans   []span         // by column
	learned []learned      // the fields of earlier records in their order: most records look like the one before
	plain   []byte         // scratch for names with escapes
}

// learned is the field name that earlier records had at a position. Only plain ASCII names are learned.
type learned struct {
	name   string
	column int // -1: not declared
}

func newScanner(names []string) *scanner {
	s := &scanner{names: make(map[string]int, len(names)), spans: make([]span, len(names))}
	for i, n := range names {
		s.names[n] = i
	}
	return s
}

// scan reads a whole record value. Afterwards spans hold the fields.
func (s *scanner) scan(b []byte) *Reject {
	s.b, s.i, s.ascii = b, 0, 0
	clear(s.spans)
	s.space()
	if s.peek() != '{' {
		return s.notAnObject()
	}
	s.i++
	if r := s.fields(); r != nil {
		return r
	}
	return s.end()
}

// end checks what only the whole value can tell.
func (s *scanner) end() *Reject {
	s.space()
	if s.i < len(s.b) {
		return s.fail("something follows the value")
	}
	if s.ascii&highBits != 0 && !utf8.Valid(s.b) {
		return reject(InvalidUTF8, "the value is not UTF-8")
	}
	return nil
}

func (s *scanner) notAnObject() *Reject {
	if len(s.b) == 0 {
		return reject(NotJSON, "the value is empty")
	}
	from := s.i
	if r := s.value(0); r != nil {
		return r
	}
	to := s.i
	if r := s.end(); r != nil {
		return r
	}
	return reject(WrongType, "the value is %s, not an object", excerpt(s.b[from:to]))
}

// fields reads the members of the top object, behind its brace.
func (s *scanner) fields() *Reject {
	s.space()
	if s.peek() == '}' {
		s.i++
		return nil
	}
	for n := 0; ; n++ {
		column, r := s.name(n)
		if r != nil {
			return r
		}
		if s.peek() != ':' {
			s.space()
			if s.peek() != ':' {
				return s.fail("no colon after a field name")
			}
		}
		s.i++
		if c := s.peek(); c <= ' ' {
			s.space()
		}
		if column >= 0 {
			r = s.keep(&s.spans[column])
		} else {
			r = s.value(1)
		}
		if r != nil {
			return r
		}
		if s.peek() != ',' {
			s.space()
			switch s.peek() {
			case ',':
			case '}':
				s.i++
				return nil
			default:
				return s.fail("neither comma nor brace after a field")
			}
		}
		s.i++
		s.space()
	}
}

// name reads the n-th field name and gives its column, -1 for one that is not declared.
func (s *scanner) name(n int) (int, *Reject) {
	if s.peek() != '"' {
		return 0, s.fail("no field name in quotes")
	}
	s.i++
	if n < len(s.learned) {
		l := &s.learned[n]
		if end := s.i + len(l.name); end < len(s.b) && s.b[end] == '"' && string(s.b[s.i:end]) == l.name {
			s.i = end + 1
			return l.column, nil
		}
	}
	v, r := s.str()
	if r != nil {
		return 0, r
	}
	raw := s.b[v.from:v.to]
	if v.escaped {
		s.plain, _ = unescape(s.plain[:0], raw) // half a surrogate pair names no declared field
		raw = s.plain
	}
	column, ok := s.names[string(raw)]
	if !ok {
		column = -1
	}
	if n == len(s.learned) && n < maxLearned && !v.escaped && isASCII(raw) {
		s.learned = append(s.learned, learned{string(raw), column})
	}
	return column, nil
}

// keep reads a value and notes where it stands.
func (s *scanner) keep(v *span) (r *Reject) {
	c := s.peek()
	switch c {
	case '"':
		s.i++
		*v, r = s.str()
		return r
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		c = '0'
	}
	from := s.i
	if r := s.value(1); r != nil {
		return r
	}
	*v = span{kind: c, from: from, to: s.i}
	return nil
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// peek is the byte at hand, 0 at the end.
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) fail(what string) *Reject {
	if s.i >= len(s.b) {
		return reject(NotJSON, "the value ends early at byte %d: %s", s.i, what)
	}
	return reject(NotJSON, "%s at byte %d: %s", what, s.i, excerpt(s.b[s.i:]))
}
