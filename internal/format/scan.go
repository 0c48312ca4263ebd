package format

import (
	"unicode/utf8"

	"github.com/kappactl/kappactl/internal/job"
)

// maxDepth is the deepest nesting of values; deeper records are rejected.
const maxDepth = 512

// maxLearned bounds how many field positions a scanner remembers.
const maxLearned = 256

// span is the position of a value in the record. Its kind is the first byte ('"', '{', '[', 't', 'f', 'n', or '0' for
// numbers), or 0 if the field is missing. The span of a string excludes the quotes.
type span struct {
	kind    byte
	escaped bool // a string that contains escapes
	from    int
	to      int
}

// scanner validates a record value in one pass and notes the positions of the declared fields. It is strict RFC 8259.
type scanner struct {
	b     []byte
	i     int
	ascii uint64 // all bytes read, or-ed: its high bits show whether there are non-ASCII bytes

	root   *target // the places that the job declares
	spans  []span  // by column
	strays []stray // values that cannot contain the places declared inside them
	plain  []byte  // scratch memory for names with escapes

	layouts layouts
}

// newScanner creates a scanner that notes the values at these places, one per column.
func newScanner(places [][]job.Step) *scanner {
	return &scanner{root: newTarget(places), spans: make([]span, len(places))}
}

// read reads a whole record value. Afterwards spans hold the fields.
func (s *scanner) read(b []byte) *Reject {
	s.strays = s.strays[:0]
	if s.quick(b) {
		return nil
	}
	s.layouts.learn()
	r := s.scan(b)
	if r == nil {
		s.learned()
	}
	return r
}

// scan is read without layouts.
func (s *scanner) scan(b []byte) *Reject {
	s.b, s.i, s.ascii = b, 0, 0
	clear(s.spans)
	s.strays = s.strays[:0]
	s.space()
	if s.peek() != '{' {
		return s.notAnObject()
	}
	s.i++
	if r := s.fields(s.root); r != nil {
		return r
	}
	return s.end()
}

// end checks conditions that need the whole value.
func (s *scanner) end() *Reject {
	s.space()
	switch c := s.peek(); {
	case c == '{' || c == '[':
		return s.fail("another value follows the value").fix("let the producer write one value in a record; " +
			"or use format raw with a column of type text, v, and unnest(string_split(v, chr(10))) in the query")
	case s.i < len(s.b):
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
	var v span
	if r := s.keep(&v, 0); r != nil {
		return r
	}
	if r := s.end(); r != nil {
		return r
	}
	text := s.b[v.from:v.to]
	return reject(WrongType, "the value is %s, not an object", shown(text, v)).fix(fixOfWhole(v.kind, text))
}

// fields reads the members of the object at t, after its brace.
func (s *scanner) fields(t *target) *Reject {
	s.space()
	if s.peek() == '}' {
		s.i++
		return nil
	}
	for n := 0; ; n++ {
		member, r := s.name(t, n)
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
		if r := s.inside(member, len(t.path)+1); r != nil {
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

// name reads the name of the n-th member of the object at t and returns its declared target, or nil.
func (s *scanner) name(t *target, n int) (*target, *Reject) {
	if s.peek() != '"' {
		return nil, s.fail("no field name in quotes")
	}
	s.i++
	if n < len(t.learned) {
		l := &t.learned[n]
		if end := s.i + len(l.name); end < len(s.b) && s.b[end] == '"' && string(s.b[s.i:end]) == l.name {
			s.i = end + 1
			return l.target, nil
		}
	}
	v, r := s.str()
	if r != nil {
		return nil, r
	}
	raw := s.b[v.from:v.to]
	if v.escaped {
		s.plain, _ = unescape(s.plain[:0], raw) // half a surrogate pair matches no declared field
		raw = s.plain
	}
	member := t.members[string(raw)]
	if n == len(t.learned) && n < maxLearned && !v.escaped && isASCII(raw) {
		t.learned = append(t.learned, learned{string(raw), member})
	}
	return member, nil
}

// keep reads a value inside depth objects and arrays and notes its position.
func (s *scanner) keep(v *span, depth int) (r *Reject) {
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
	if r := s.value(depth); r != nil {
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

// peek returns the current byte, or 0 at the end.
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
