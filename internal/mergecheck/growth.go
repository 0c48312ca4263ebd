package mergecheck

import "math"

// Times estimates the number of rows of the version's table for scale times as many records as were measured. It fits
// two growth curves to the rows from half of the parts and from all of them. In one, the number of keys grows with a
// power of the number of records, as the vocabulary of a text does (Heaps' law). In the other, records are spread
// evenly over a fixed number of keys, so that new keys become rare. The estimate weights each curve by how well it
// predicts the rows from a quarter of the parts.
func (m Measured) Times(scale float64) float64 {
	full, half := float64(m.Rows), float64(m.HalfRows)
	if half <= 0 || full <= half {
		return full // no new keys: the table does not grow
	}
	left := math.Min(1, full/half-1) // share of the keys that half of the records do not contain
	power := math.Log2(1 + left)
	heaps := func(s float64) float64 { return full * math.Pow(s, power) }
	even := heaps // every record adds a key: both curves agree
	if left < 1 {
		even = func(s float64) float64 { return full * (1 - math.Pow(left, 2*s)) / (1 - left*left) }
	}
	quarter := float64(m.QuarterRows)
	errHeaps, errEven := distance(heaps(0.25), quarter), distance(even(0.25), quarter)
	if errHeaps+errEven == 0 {
		return heaps(scale)
	}
	share := errEven / (errHeaps + errEven)
	return math.Pow(heaps(scale), share) * math.Pow(even(scale), 1-share)
}

// distance returns the distance of two numbers: the absolute logarithm of their ratio.
func distance(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return math.Abs(math.Log(a / b))
}
