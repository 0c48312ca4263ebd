package policy

import (
	"math"
	"testing"
)

// The guardrail of the specification (vector 15).
func TestAConfidenceSequenceForGuardrails(t *testing.T) {
	for _, c := range []struct{ bad, half, lower float64 }{{90, .003686017, .000313983}, {100, .003813926, .001186074}} {
		e, ok := Stratified([]Tally{proportion(10000, 50)}, []Tally{proportion(10000, c.bad)})
		if !ok {
			t.Fatal("no estimate")
		}
		half := Always(e.Subjects, 5000, .05) * math.Sqrt(e.Variance)
		near(t, "half width", half, c.half, 1e-9)
		near(t, "lower bound", e.Difference-half, c.lower, 1e-9)
	}
	for n, want := range map[float64]float64{1000: 3.363887726, 5000: 3.035208990, 20000: 3.127114144} {
		near(t, "half width in standard errors", Always(n, 5000, .05), want, 1e-9)
	}
}

func TestInversePropensity(t *testing.T) {
	ips, snips, effective := InversePropensity([]Weighted{{.2, 1}, {.2, 0}, {.2, 1}}, 8)
	near(t, "IPS", ips, 1.25, 1e-9)
	near(t, "SNIPS", snips, 2./3, 1e-9)
	near(t, "ESS", effective, 3, 1e-9)
	if a, b, c := InversePropensity(nil, 8); a != 0 || b != 0 || c != 0 {
		t.Error("an estimate of nothing")
	}
}

func TestStrata(t *testing.T) {
	epochs := [][]Tally{{proportion(500, 50), proportion(500, 60)}, {proportion(100, 5), proportion(900, 54)}, {proportion(1, 1), proportion(9, 9)}}
	arms, left, ok := Strata(epochs, false)
	if !ok || left != 1 {
		t.Fatal(left, ok)
	}
	near(t, "control", arms[0].M, .075, 1e-9) // vector 14
	near(t, "arm", arms[1].M, .09, 1e-9)
	near(t, "variance of the difference", arms[0].V+arms[1].V, .015238657*.015238657, 1e-9)
	if _, _, ok := Strata([][]Tally{{proportion(5, 0), proportion(5, 0)}}, false); ok {
		t.Error("constant rewards have no variance")
	}
	if arms, _, ok := Strata([][]Tally{{proportion(5, 0), proportion(5, 0)}}, true); !ok || arms[0].V <= 0 {
		t.Error("no success is not certainty")
	}
	if _, _, ok := Strata([][]Tally{{{N: 5, Sum: math.NaN()}, proportion(5, 0)}}, true); ok {
		t.Error("a mean that is not a number")
	}
}

// The tail of a posterior without successes is exponential: twelve standard deviations are not all of it.
func TestArmsWithoutSuccess(t *testing.T) {
	for _, arms := range [][]Tally{{proportion(200, 0), proportion(200, 0)}, {proportion(200, 200), proportion(200, 200)}} {
		best, err := BestProbabilities(Betas(arms))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "P(best)", best[0], .5, 1e-9)
	}
}
