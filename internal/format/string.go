package format

import (
	"encoding/binary"
	"math/bits"
)

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// special has the high bit of the first byte of w that is a quote, a backslash or a control character; bits of later
// bytes mean nothing.
func special(w uint64) uint64 {
	// Flipping the second bit makes a quote the one character below 0x21 beside control characters.
	return (((w ^ lowBits*0x02) - lowBits*0x21) | ((w ^ lowBits*'\\') - lowBits)) &^ w & highBits
}

// str reads a string after its opening quote, eight bytes at a time as long as none of them is special.
func (s *scanner) str() (span, *Reject) {
	b, i := s.b, s.i
	v := span{kind: '"', from: i}
	ascii := s.ascii
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			ascii |= w
			if found := special(w); found != 0 {
				i += bits.TrailingZeros64(found) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			s.i = i
			return v, s.fail("a string without an end")
		}
		c := b[i]
		ascii |= uint64(c)
		switch {
		case c == '"':
			v.to = i
			s.i, s.ascii = i+1, ascii
			return v, nil
		case c == '\\':
			n := escape(b[i:])
			if n == 0 {
				s.i = i
				return v, s.fail("an escape that is not JSON")
			}
			v.escaped = true
			i += n
		case c < 0x20:
			s.i = i
			return v, s.fail("a control character in a string")
		default:
			i++
		}
	}
}

// escape returns the length of the escape at the start of b, or 0 if it is not a valid escape.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) >= 6 && hex4(b[2:]) >= 0 {
			return 6
		}
	}
	return 0
}
