package format

// The limits of PostgreSQL's numeric, and therefore of numbers in jsonb.
const (
	mostWholeDigits    = 131_072
	mostFractionDigits = 16_383
)

// json keeps the text of a value. It rejects what PostgreSQL's jsonb rejects: NUL characters, halves of surrogate
// pairs, and numbers beyond numeric. If an object repeats a name, only the last member is kept, as in jsonb.
func (c *converter) json(b []byte, v span, out *cell) *Reject {
	from, to := v.from, v.to
	if v.kind == '"' {
		from, to = from-1, to+1
	}
	c.names.reset()
	for i := from; i < to; {
		switch ch := b[i]; {
		case ch == '"':
			n, escaped := stringLength(b[i+1 : to])
			text, r := c.str(b[i+1:i+1+n], span{kind: '"', escaped: escaped})
			if r != nil {
				return r
			}
			if i += n + 2; c.names.inObject() && isName(b[i:to]) {
				c.names.add(text)
			}
		case ch == '-' || ch-'0' <= 9:
			n := numberLength(b[i:to])
			if !representable(b[i : i+n]) {
				return reject(OutOfRange, "%s is out of range for jsonb", excerpt(b[i:i+n]))
			}
			i += n
		default:
			c.names.nest(ch)
			i++
		}
	}
	if out.b = b[from:to]; c.names.repeated {
		out.b, _ = lastOfEach(nil, out.b, 0)
	}
	return nil
}

// stringLength returns the length of a valid string up to its closing quote.
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

// representable reports whether PostgreSQL's numeric can hold a JSON number.
func representable(b []byte) bool {
	if b[0] == '-' {
		b = b[1:]
	}
	digits, point, exponent := dissect(b)
	return point+exponent <= mostWholeDigits && max(len(digits)-point-1, 0)-exponent <= mostFractionDigits
}
