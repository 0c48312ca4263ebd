package policy

import "math"

// Verdict is the conclusion of a sequential test about the arms. It changes no weight by itself.
type Verdict string

// The verdicts.
const (
	Undecided Verdict = "undecided"
	Win       Verdict = "win"  // an arm is better than the control
	Harm      Verdict = "harm" // the control is better than every other arm
)

// Sequential decides an A/B test with constant weights. It may be looked at as often as one likes.
type Sequential struct {
	Alpha float64 // of a false win, over all arms and looks
	MDE   float64 // the difference that matters: the scale of the mixture
	Down  bool    // lower rewards are better
	// MinEffect is the least difference of a win.
	MinEffect float64
}

// Decide compares every arm with the control, which is the first. best is the index of the arm that wins.
func (s Sequential) Decide(effects []Effect) (v Verdict, best int) {
	harmed := 0
	for i, e := range effects {
		if e.Variance <= 0 || math.IsNaN(e.Variance) || math.IsNaN(e.Difference) {
			continue
		}
		if s.Down {
			e.Difference = -e.Difference
		}
		lo, hi := e.Interval(math.Abs(s.MDE), s.Alpha/float64(len(effects)))
		switch {
		case lo > s.MinEffect && (best == 0 || e.Difference > s.turned(effects[best-1])):
			best = i + 1
		case hi < 0:
			harmed++
		}
	}
	switch {
	case best > 0:
		return Win, best
	case harmed > 0 && harmed == len(effects):
		return Harm, 0
	}
	return Undecided, 0
}

func (s Sequential) turned(e Effect) float64 {
	if s.Down {
		return -e.Difference
	}
	return e.Difference
}

// Confident decides a bandit: an arm that is the best with probability P or more, and by which at most LossMax is
// expected to be lost. It bounds the loss, not the rate of false wins.
type Confident struct {
	P       float64
	LossMax float64
}

// Decide returns the verdict and the index of the arm that it is about.
func (c Confident) Decide(best, loss []float64) (Verdict, int) {
	for i, p := range best {
		if p < c.P || loss[i] > c.LossMax {
			continue
		}
		if i == 0 {
			return Harm, 0
		}
		return Win, i
	}
	return Undecided, 0
}
