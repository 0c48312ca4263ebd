package policy

import "math"

// Strata are the means of the arms over several epochs, each epoch weighted by its share of all subjects. rates:
// rewards are 0 or 1, and the variance of a cell is taken at (s+1)/(n+2), so that no success is not certainty. Epochs
// in which an arm has fewer than two subjects are left out. ok is false when none is left, or a value is not a number.
func Strata(epochs [][]Tally, rates bool) (arms []Normal, leftOut int, ok bool) {
	all := 0.0
	for _, e := range epochs {
		if n, full := subjects(e); full {
			all += n
		} else {
			leftOut++
		}
	}
	if all == 0 {
		return nil, leftOut, false
	}
	arms = make([]Normal, len(epochs[0]))
	for _, e := range epochs {
		n, full := subjects(e)
		if !full {
			continue
		}
		w := n / all
		for i, t := range e {
			v := t.Variance()
			if rates {
				p := (t.Sum + 1) / (t.N + 2)
				v = p * (1 - p)
			}
			arms[i].M += w * t.Mean()
			arms[i].V += w * w * v / t.N
		}
	}
	for _, a := range arms {
		if !(a.V > 0) || math.IsInf(a.V, 0) || math.IsNaN(a.M) || math.IsInf(a.M, 0) {
			return arms, leftOut, false
		}
	}
	return arms, leftOut, true
}

// subjects counts those of an epoch; full: every arm has two or more.
func subjects(arms []Tally) (n float64, full bool) {
	for _, t := range arms {
		if t.N < 2 {
			return 0, false
		}
		n += t.N
	}
	return n, true
}

// Always is the half width, in standard errors, of a confidence sequence for a mean after n subjects: it holds at all
// looks together with probability 1 - alpha and is the narrowest about best subjects (Waudby-Smith et al., Time-uniform
// central limit theory, 2021).
func Always(n, best, alpha float64) float64 {
	l := -2 * math.Log(alpha)
	rho2 := (l + math.Log(l+1)) / best
	x := n * rho2
	return math.Sqrt(2 * (x + 1) / x * (math.Log(x+1)/2 - math.Log(alpha)))
}

// Weighted is a reward with the probability with which its arm was chosen.
type Weighted struct {
	Probability, Reward float64
}

// InversePropensity estimates the mean reward that an arm would have had with all n subjects, from those that got it.
// snips is the same normalised by the weights; effective is how many subjects of equal weight would say as much.
func InversePropensity(got []Weighted, n int) (ips, snips, effective float64) {
	sum, weights, squares := 0.0, 0.0, 0.0
	for _, g := range got {
		w := 1 / g.Probability
		sum += w * g.Reward
		weights += w
		squares += w * w
	}
	if weights == 0 || n == 0 {
		return 0, 0, 0
	}
	return sum / float64(n), sum / weights, weights * weights / squares
}
