package policy

import (
	"fmt"
	"testing"
)

// More weight for an arm moves subjects into it alone, and less moves the same ones back.
func TestWeightsMoveOnlyTheDifference(t *testing.T) {
	const subjects = 100_000
	assign := func(ppm ...int) []int {
		out := make([]int, subjects)
		for i := range out {
			out[i] = ArmOf(Cuts(ppm), Bucket(ArmSalt("orders", "3"), fmt.Sprint("u", i)))
		}
		return out
	}
	moved := func(a, b []int) map[[2]int]int {
		out := map[[2]int]int{}
		for i := range a {
			if a[i] != b[i] {
				out[[2]int{a[i], b[i]}]++
			}
		}
		return out
	}
	half, more := assign(500_000, 500_000, 0), assign(600_000, 400_000, 0)
	third := assign(600_000, 300_000, 100_000)
	for _, c := range []struct {
		name     string
		a, b     []int
		from, to int
	}{{"50/50 to 60/40", half, more, 1, 0}, {"60/40 to 60/30/10", more, third, 1, 2}} {
		m := moved(c.a, c.b)
		if n := m[[2]int{c.from, c.to}]; len(m) != 1 || n < 9700 || n > 10300 {
			t.Errorf("%s moves %v", c.name, m)
		}
	}
	if m := moved(half, assign(500_000, 500_000, 0)); len(m) != 0 {
		t.Errorf("going back moves %v", m)
	}
}

func TestSampleRatiosOfFieldReports(t *testing.T) {
	for _, c := range []struct {
		name  string
		epoch Epoch
		alarm bool
	}{
		{"95/5 as designed", Epoch{[]float64{.95, .05}, []int64{9500, 500}}, false},
		{"an arm without traffic", Epoch{[]float64{.5, .5}, []int64{5000, 0}}, true},
		{"too few", Epoch{[]float64{.5, .5}, []int64{2, 0}}, false},
		{"even", Epoch{[]float64{.5, .5}, []int64{50000, 49800}}, false},
		{"an arm of weight zero", Epoch{[]float64{.5, .5, 0}, []int64{1000, 1000, 0}}, false},
		{"subjects in an arm of weight zero", Epoch{[]float64{.5, .5, 0}, []int64{1000, 1000, 40}}, true},
	} {
		if m := SampleRatio([]Epoch{c.epoch}); (m.P < .001) != c.alarm {
			t.Errorf("%s: %+v", c.name, m)
		}
	}
}
