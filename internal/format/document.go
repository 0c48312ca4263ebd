package format

// The widest number that PostgreSQL's numeric, and with it jsonb, can hold.
const (
	mostWholeDigits    = 131_072
	mostFractionDigits = 16_383
)

// json keeps the text of a value as it is. What PostgreSQL's jsonb refuses, it refuses too: NUL characters, halves of
// surrogate pairs, numbers beyond numeric.
func (c *converter) json(b []byte, v span, out *cell) *Reject {
	from, to := v.from, v.to
	if v.kind == '"' {
		from, to = from-1, to+1
	}
	out.b = b[from:to]
	for i := from; i < to; {
		switch ch := b[i]; {
		case ch == '"':
			n, escaped := stringLength(b[i+1 : to])
			if escaped {
				mark := len(c.arena)
				_, r := c.str(b[i+1:i+1+n], span{kind: '"', escaped: true})
				c.arena = c.arena[:mark]
				if r != nil {
					return r
				}
			}
			i += n + 2
		case ch == '-' || ch-'0' <= 9:
			n := numberLength(b[i:to])
			if !representable(b[i : i+n]) {
				return reject(OutOfRange, "%s is out of range for jsonb", excerpt(b[i:i+n]))
			}
			i += n
		default:
			i++
		}
	}
	return nil
}

// stringLength is how far the closing quote of a valid string is.
func stringLength(b []byte) (n int, escaped bool) {
	for b[n] != '"' {
		if b[n] == '\\' {
			escaped = true
			n++
		}
		n++
	}
	return n, escaped
}

func numberLength(b []byte) int {
	n := 0
	for n < len(b) {
		switch c := b[n]; {
		case c-'0' <= 9, c == '-', c == '+', c == '.', c|0x20 == 'e':
			n++
		default:
			return n
		}
	}
	return n
}

// representable says whether PostgreSQL's numeric can hold a JSON number.
func representable(b []byte) bool {
	if b[0] == '-' {
		b = b[1:]
	}
	digits, point, exponent := dissect(b)
	return point+exponent <= mostWholeDigits && max(len(digits)-point-1, 0)-exponent <= mostFractionDigits
}
