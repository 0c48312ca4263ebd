package policy

import "gonum.org/v1/gonum/mathext"

// minExpected is how many subjects an arm must be expected to have for the chi-squared approximation to hold.
const minExpected = 5

// Mismatch is the test for a sample ratio mismatch: whether subjects came to arms as the weights say.
type Mismatch struct {
	ChiSquared float64 `json:"chi_squared"`
	Freedom    int     `json:"degrees_of_freedom"`
	P          float64 `json:"p"`
	// Impossible: a subject is in an arm of weight zero.
	Impossible bool `json:"impossible,omitempty"`
}

// Epoch is how many subjects were first assigned to each arm while the weights were constant.
type Epoch struct {
	Weights  []float64 `json:"weights"`
	Subjects []int64   `json:"subjects"`
}

// SampleRatio adds up the test of each epoch. Pooled counts against the newest weights would raise a false alarm after
// every change of weights. P is 1 while there is too little to judge.
func SampleRatio(epochs []Epoch) Mismatch {
	m := Mismatch{P: 1}
	for _, e := range epochs {
		m.add(e)
	}
	switch {
	case m.Impossible:
		m.P = 0
	case m.Freedom > 0:
		m.P = mathext.GammaIncRegComp(float64(m.Freedom)/2, m.ChiSquared/2)
	}
	return m
}

func (m *Mismatch) add(e Epoch) {
	var all int64
	for i, n := range e.Subjects {
		all += n
		m.Impossible = m.Impossible || (n > 0 && e.Weights[i] == 0)
	}
	kept, share, seen := 0, 0.0, int64(0)
	for i, n := range e.Subjects {
		if float64(all)*e.Weights[i] >= minExpected {
			kept, share, seen = kept+1, share+e.Weights[i], seen+n
		}
	}
	if kept < 2 {
		return
	}
	for i, n := range e.Subjects {
		if float64(all)*e.Weights[i] < minExpected {
			continue
		}
		expected := float64(seen) * e.Weights[i] / share
		m.ChiSquared += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	m.Freedom += kept - 1
}
