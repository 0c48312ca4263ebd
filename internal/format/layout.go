package format

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// The bounds of what a scanner keeps of layouts. Records beyond them are read by scan.
const (
	maxValues   = 1024 // in all layouts
	maxForks    = 4    // layouts that go on differently behind one value
	maxLead     = 128  // bytes between two values
	maxMisses   = 256  // records more than were read by layouts, before layouts are given up for a while
	pauseValues = 1 << 16
)

// layouts reads records that are laid out as earlier ones: everything between their values, names, punctuation and
// white space, is the same text. Comparing it is faster than reading it, and what scan has found in one of them holds
// for the others. Records of several layouts form a tree, as members may be missing. Where a record leaves the tree
// scan reads it from its start, and its layout is added.
type layouts struct {
	first  layoutValue // stands before the first value
	values int
	misses int // records that scan had to read, without those that layouts have read
	pause  int // records to leave to scan

	learning bool
	marks    []mark    // the values of the record that scan reads
	entered  []*target // whose members scan has read
}

// layoutValue is a value of a layout.
type layoutValue struct {
	lead   string // the text before it, from the value before
	begins uint64 // the first eight bytes of lead
	ends   uint64 // and the last
	column int    // that takes it; -1: none
	depth  int    // objects and arrays around it
	next   []*layoutValue
	tails  []tail
}

// tail is what is behind the last value of a layout.
type tail struct {
	text   string
	absent []int // columns without a value
}

// mark is a value that scan has read.
type mark struct{ from, to, column, depth int }

// quick reads a whole record value as earlier ones were laid out. False: scan has to read it. Afterwards spans hold the
// fields.
func (s *scanner) quick(b []byte) bool {
	l := &s.layouts
	if l.pause > 0 {
		l.pause--
		return false
	}
	s.b, s.ascii = b, 0
	i, ascii := 0, uint64(0)
	for at := &l.first; ; {
		of := at.after(b[i:])
		if of == nil {
			return s.quickEnd(at, b[i:], ascii)
		}
		at, i = of, i+len(of.lead)
		if b[i] != '"' {
			if i = s.quickValue(of, i); i < 0 {
				return false
			}
			continue
		}
		from, found := i+1, uint64(0)
		for i = from; found == 0; i += 8 {
			w := eight(b, i)
			ascii |= w
			found = special(w)
		}
		i += bits.TrailingZeros64(found)>>3 - 8
		escaped := i >= len(b) || b[i] != '"'
		if escaped {
			if i = s.escaped(i); i < 0 {
				return false
			}
		}
		if of.column >= 0 {
			s.spans[of.column] = span{'"', escaped, from, i}
		}
		i++
	}
}

// eight are the bytes from i on, and zeros behind the last.
func eight(b []byte, i int) uint64 {
	if i+8 <= len(b) {
		return binary.LittleEndian.Uint64(b[i:])
	}
	var last [8]byte
	if i < len(b) {
		copy(last[:], b[i:])
	}
	return binary.LittleEndian.Uint64(last[:])
}

// escaped returns where a string ends that has something special at i; -1: scan has to read the record.
func (s *scanner) escaped(i int) int {
	if s.i = i; s.peek() != '\\' {
		return -1
	}
	v, r := s.str()
	if r != nil {
		return -1
	}
	return v.to
}

// after is the value whose lead b begins with; nil: there is none.
func (v *layoutValue) after(b []byte) *layoutValue {
	for _, next := range v.next {
		n := len(next.lead)
		switch {
		case len(b) <= n:
		case n < 8 || n > 16:
			if string(b[:n]) == next.lead {
				return next
			}
		case binary.LittleEndian.Uint64(b) == next.begins && binary.LittleEndian.Uint64(b[n-8:]) == next.ends:
			return next
		}
	}
	return nil
}

func (s *scanner) quickEnd(at *layoutValue, rest []byte, ascii uint64) bool {
	for i := range at.tails {
		if t := &at.tails[i]; string(rest) == t.text {
			for _, column := range t.absent {
				s.spans[column] = span{}
			}
			if s.layouts.misses > 0 {
				s.layouts.misses--
			}
			return (ascii|s.ascii)&highBits == 0 || utf8.Valid(s.b)
		}
	}
	return false
}

// quickValue reads a value at i that is no string and returns where it ends; -1: scan has to read the record.
func (s *scanner) quickValue(of *layoutValue, i int) int {
	b, v := s.b, span{kind: '0', from: i}
	if b[i]-'1' < 9 {
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
	}
	if v.to = i; i == v.from || i == len(b) || b[i] == '.' || b[i]|0x20 == 'e' { // no plain integer
		s.i = v.from
		if s.keep(&v, of.depth) != nil {
			return -1
		}
	}
	if of.column >= 0 {
		s.spans[of.column] = v
	}
	return v.to
}

// learn begins to note the layout of the record that scan is about to read.
func (l *layouts) learn() {
	l.learning = l.pause == 0 && l.values < maxValues
	l.marks, l.entered = l.marks[:0], l.entered[:0]
	if l.pause > 0 {
		return
	}
	if l.misses++; l.misses > maxMisses {
		*l = layouts{pause: pauseValues, marks: l.marks, entered: l.entered}
	}
}

// mark notes a value from an offset to where the scanner is. Without a target no column takes it.
func (s *scanner) mark(from int, t *target, depth int) {
	column := -1
	if t != nil {
		column = t.column
	}
	s.layouts.marks = append(s.layouts.marks, mark{from, s.i, column, depth})
}

// enters notes that the members of an object are read. A layout cannot tell that the columns below lose their values
// when the same object comes again, nor give them all of the object.
func (s *scanner) enters(t *target) {
	l := &s.layouts
	l.learning = l.learning && len(t.columns) == 0 && !slices.Contains(l.entered, t)
	l.entered = append(l.entered, t)
}

// learned adds the layout of the record that scan has read.
func (s *scanner) learned() {
	l := &s.layouts
	if !l.learning || len(l.marks) == 0 || l.values+len(l.marks) > maxValues {
		return
	}
	at, end := &l.first, 0
	for _, m := range l.marks {
		lead := s.b[end:m.from]
		if len(lead) > maxLead || !isASCII(lead) {
			return
		}
		next := at.child(string(lead), m)
		if next == nil {
			if len(at.next) == maxForks {
				return
			}
			next = &layoutValue{lead: string(lead), column: m.column, depth: m.depth}
			if n := len(lead); n >= 8 {
				next.begins, next.ends = binary.LittleEndian.Uint64(lead), binary.LittleEndian.Uint64(lead[n-8:])
			}
			at.next = append(at.next, next)
			l.values++
		}
		at, end = next, m.to
	}
	t := tail{text: string(s.b[end:])}
	if len(t.text) > maxLead || len(at.tails) == maxForks ||
		slices.ContainsFunc(at.tails, func(o tail) bool { return o.text == t.text }) {
		return
	}
	for column := range s.spans {
		if !slices.ContainsFunc(l.marks, func(m mark) bool { return m.column == column }) {
			t.absent = append(t.absent, column)
		}
	}
	at.tails = append(at.tails, t)
}

// child is the next value with that lead; nil: there is none. The lead, with those before it, decides which column
// takes it.
func (v *layoutValue) child(lead string, m mark) *layoutValue {
	for _, next := range v.next {
		if next.lead == lead && next.column == m.column && next.depth == m.depth {
			return next
		}
	}
	return nil
}
