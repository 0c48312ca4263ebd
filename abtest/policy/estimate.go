package policy

import "math"

// Effect is the estimated difference between an arm and the control.
type Effect struct {
	Difference float64 `json:"difference"` // the arm's mean less the control's
	Variance   float64 `json:"variance"`   // of the difference
	Subjects   float64 `json:"subjects"`   // of both arms, in the epochs that count
	LeftOut    int     `json:"epochs_left_out"`
}

// Stratified estimates the difference between two arms from their tallies per epoch. The weights of an epoch are its
// share of all subjects: with weights that changed while the base rate drifted, pooled counts can have the wrong sign
// (Simpson's paradox). Epochs in which an arm has fewer than two subjects are left out. ok is false when none is left.
func Stratified(control, arm []Tally) (e Effect, ok bool) {
	for i := range control {
		if control[i].N < 2 || arm[i].N < 2 {
			e.LeftOut++
			continue
		}
		e.Subjects += control[i].N + arm[i].N
	}
	if e.Subjects == 0 {
		return e, false
	}
	for i := range control {
		if control[i].N < 2 || arm[i].N < 2 {
			continue
		}
		w := (control[i].N + arm[i].N) / e.Subjects
		e.Difference += w * (arm[i].Mean() - control[i].Mean())
		e.Variance += w * w * (control[i].Variance()/control[i].N + arm[i].Variance()/arm[i].N)
	}
	return e, e.Variance > 0 && !math.IsNaN(e.Difference)
}

// Likelihood is the mixture likelihood ratio of a difference against none, with a normal mixture of standard deviation
// tau. Its inverse may be looked at as often as one likes: under no difference it is below alpha at any look with
// probability alpha at most (Johari, Pekelis, Walsh, Always valid inference, 2015).
func (e Effect) Likelihood(tau float64) float64 {
	v, t2 := e.Variance, tau*tau
	return math.Sqrt(v/(v+t2)) * math.Exp(t2*e.Difference*e.Difference/(2*v*(v+t2)))
}

// Interval holds the true difference at all looks together with probability 1 - alpha: the inversion of Likelihood.
func (e Effect) Interval(tau, alpha float64) (lo, hi float64) {
	v, t2 := e.Variance, tau*tau
	half := math.Sqrt(2 * v * (v + t2) / t2 * (math.Log(1/alpha) + math.Log((v+t2)/v)/2))
	return e.Difference - half, e.Difference + half
}
