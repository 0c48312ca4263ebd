package law

import "math"

// Times is how many rows the version's table will have for scale times as many records as were measured, from the rows that a
// quarter, a half and all of the parts gave. Two laws are fitted through the last two. By one the number of keys grows with a power of
// the number of records, as words of a text do (Heaps); by the other records fall on so many keys evenly, of which ever fewer are new.
// Each counts as much as it is nearer to what the quarter gave.
func (m Measured) Times(scale float64) float64 {
	full, half := float64(m.Rows), float64(m.HalfRows)
	if half <= 0 || full <= half {
		return full // all keys are known
	}
	left := math.Min(1, full/half-1) // the share of keys that half of the records leave unseen
	power := math.Log2(1 + left)
	heaps := func(s float64) float64 { return full * math.Pow(s, power) }
	even := heaps // every record brings a key: the laws agree
	if left < 1 {
		even = func(s float64) float64 { return full * (1 - math.Pow(left, 2*s)) / (1 - left*left) }
	}
	quarter := float64(m.QuarterRows)
	offHeaps, offEven := off(heaps(0.25), quarter), off(even(0.25), quarter)
	if offHeaps+offEven == 0 {
		return heaps(scale)
	}
	share := offEven / (offHeaps + offEven)
	return math.Pow(heaps(scale), share) * math.Pow(even(scale), 1-share)
}

// off is how far a number is from another, as a factor's logarithm.
func off(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return math.Abs(math.Log(a / b))
}
