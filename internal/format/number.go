package format

import (
	"errors"
	"math/bits"
)

var (
	errTooManyDigits = errors.New("more decimal places than it keeps")
	errTooLarge      = errors.New("too large")
)

// number128 is a decimal number scaled to an integer of at most 128 bits, with a separate sign.
type number128 struct {
	hi, lo   uint64
	negative bool
	cut      bool // non-zero digits below the scale were dropped
}

// scaled parses a JSON number and returns the integer part of number × 10^scale, rounded towards zero. It returns
// errTooLarge for more than 38 digits.
func scaled(b []byte, scale int) (n number128, err error) {
	if b[0] == '-' {
		n.negative = true
		b = b[1:]
	}
	digits, point, exponent := dissect(b)
	// The value is 0.d1d2d3… × 10^(point+exponent), where the digits skip the decimal point.
	whole := point + exponent + scale // number of digits that count
	seen, taken := 0, 0               // digits read, and those since the first non-zero one
	for _, c := range digits {
		if c == '.' {
			continue
		}
		d := uint64(c - '0')
		if seen >= whole {
			n.cut = n.cut || d != 0
			continue
		}
		seen++
		if taken == 0 && d == 0 {
			continue
		}
		if taken++; taken > 38 {
			return n, errTooLarge
		}
		n.push(d)
	}
	if taken == 0 {
		return n, nil // zero, whatever its exponent is
	}
	for ; seen < whole; seen++ {
		if taken++; taken > 38 {
			return n, errTooLarge
		}
		n.push(0)
	}
	return n, nil
}

// push appends a decimal digit.
func (n *number128) push(d uint64) {
	hi, lo := bits.Mul64(n.lo, 10)
	hi += n.hi * 10
	var carry uint64
	n.lo, carry = bits.Add64(lo, d, 0)
	n.hi = hi + carry
}

// dissect splits an unsigned JSON number into its digits with the point, the number of digits before the point, and its
// exponent, clamped to the range that matters.
func dissect(b []byte) (digits []byte, point, exponent int) {
	digits, point = b, -1
	for i, c := range b {
		if c == '.' {
			point = i
		}
		if c|0x20 == 'e' {
			digits, exponent = b[:i], exponentOf(b[i+1:])
			break
		}
	}
	if point < 0 {
		point = len(digits)
	}
	return digits, point, exponent
}

func exponentOf(b []byte) int {
	const most = 1 << 30
	negative := b[0] == '-'
	if b[0] == '-' || b[0] == '+' {
		b = b[1:]
	}
	e := 0
	for _, c := range b {
		if e = e*10 + int(c-'0'); e > most {
			e = most
		}
	}
	if negative {
		return -e
	}
	return e
}

// integer parses a JSON number as an integer: 1, 1.0 and 1e3 are valid, 1.5 is not.
func integer(b []byte) (int64, error) {
	if v, ok := short(b); ok {
		return v, nil
	}
	n, err := scaled(b, 0)
	switch {
	case err != nil:
		return 0, err
	case n.cut:
		return 0, errTooManyDigits
	}
	return n.int64()
}

// int64 returns the number, or errTooLarge if it does not fit.
func (n number128) int64() (int64, error) {
	switch {
	case n.hi != 0:
		return 0, errTooLarge
	case n.negative && n.lo == 1<<63:
		return -1 << 63, nil
	case n.lo >= 1<<63:
		return 0, errTooLarge
	case n.negative:
		return -int64(n.lo), nil
	}
	return int64(n.lo), nil
}

// short parses plain integers of up to 18 digits, the most frequent numbers.
func short(b []byte) (int64, bool) {
	d := b
	if d[0] == '-' {
		d = d[1:]
	}
	if len(d) > 18 {
		return 0, false
	}
	var v int64
	for _, c := range d {
		if c -= '0'; c > 9 {
			return 0, false
		}
		v = v*10 + int64(c)
	}
	if len(d) < len(b) {
		v = -v
	}
	return v, true
}

// decimal parses a JSON number as numeric(precision, scale), in two's complement. It never rounds digits away.
func decimal(b []byte, precision, scale int) (hi, lo uint64, err error) {
	n, err := scaled(b, scale)
	switch {
	case err != nil:
		return 0, 0, err
	case n.cut:
		return 0, 0, errTooManyDigits
	case !n.below(precision):
		return 0, 0, errTooLarge
	case n.negative:
		lo, borrow := bits.Sub64(0, n.lo, 0)
		hi, _ := bits.Sub64(0, n.hi, borrow)
		return hi, lo, nil
	}
	return n.hi, n.lo, nil
}

// below reports whether the number has at most that many digits.
func (n number128) below(digits int) bool {
	limit := number128{lo: 1}
	for range digits {
		limit.push(0)
	}
	return n.hi < limit.hi || n.hi == limit.hi && n.lo < limit.lo
}

// epoch parses a JSON number of a time unit as microseconds, where places is the number of decimal places from the unit
// to microseconds. It rounds fractions of a microsecond down, towards the past.
func epoch(b []byte, places int) (int64, error) {
	n, err := scaled(b, places)
	if err != nil {
		return 0, err
	}
	v, err := n.int64()
	if err == nil && n.negative && n.cut {
		v--
	}
	return v, err
}
