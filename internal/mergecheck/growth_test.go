package mergecheck

import (
	"math"
	"testing"
)

// TestRowsOfManyMoreRecordsAreForeseen: 50 times as many, of keys of every kind.
func TestRowsOfManyMoreRecordsAreForeseen(t *testing.T) {
	const sampled, scale = 200_000.0, 50.0
	even := func(keys float64) func(float64) float64 {
		return func(n float64) float64 { return keys * (1 - math.Exp(-n/keys)) }
	}
	for name, c := range map[string]struct {
		keys   func(records float64) float64
		within float64
	}{
		"all keys are known":         {func(float64) float64 { return 1000 }, 0.001},
		"every record has its own":   {func(n float64) float64 { return n }, 0.001},
		"72,000 keys, evenly":        {even(72_000), 0.03},
		"a million keys, evenly":     {even(1_000_000), 0.03},
		"words of a text":            {func(n float64) float64 { return 30 * math.Sqrt(n) }, 0.03},
		"a new key every ten":        {func(n float64) float64 { return n / 10 }, 0.03},
		"some known, the rest words": {func(n float64) float64 { return 5000 + 30*math.Sqrt(n) }, 0.4},
	} {
		m := Measured{
			QuarterRows: int64(math.Round(c.keys(sampled / 4))), HalfRows: int64(math.Round(c.keys(sampled / 2))), Rows: int64(math.Round(c.keys(sampled))),
		}
		want := c.keys(sampled * scale)
		if got := m.Times(scale); math.Abs(got-want) > c.within*want {
			t.Errorf("%s: %.0f rows, want %.0f", name, got, want)
		}
		if got := m.Times(1); math.Abs(got-float64(m.Rows)) > 0.01*float64(m.Rows) {
			t.Errorf("%s: %.0f rows of what was measured, which are %d", name, got, m.Rows)
		}
	}
	if got := (Measured{}).Times(scale); got != 0 {
		t.Errorf("nothing measured: %f", got)
	}
}
