package judge

import (
	"math"

	"github.com/kappactl/kappactl/abtest/policy"
	"github.com/kappactl/kappactl/internal/job"
)

// Estimates are what is known about the rewards of the arms.
type Estimates struct {
	Arms []ArmEstimate `json:"arms,omitempty"`
	// LeftOut are the epochs in which an arm has fewer than two subjects.
	LeftOut     int  `json:"epochs_left_out,omitempty"`
	Approximate bool `json:"approximate,omitempty"` // the weights have changed: the interval is not exactly valid

	effects    []policy.Effect
	normals    []policy.Normal
	posteriors []policy.Posterior // turned so that higher is better
}

// ArmEstimate is what is known about an arm. The comparison with the control is nil for the control, and while there is
// too little.
type ArmEstimate struct {
	Version    string   `json:"version"`
	Subjects   float64  `json:"subjects"` // whose window is over
	Mean       float64  `json:"mean"`
	Difference *float64 `json:"difference,omitempty"` // to the control's mean
	Lo         *float64 `json:"lo,omitempty"`         // the interval of the difference, valid at all looks together
	Hi         *float64 `json:"hi,omitempty"`
	P          *float64 `json:"p,omitempty"`    // the least so far
	Best       *float64 `json:"best,omitempty"` // the probability that it is the best
	Loss       *float64 `json:"loss,omitempty"` // expected, if it were chosen
}

// estimate works out means, intervals, with believe probabilities, and what is left to the next look.
func (j *judgement) estimate(believe bool) {
	k := len(j.in.Arms)
	total := make([]policy.Tally, k)
	for _, e := range j.in.Matured {
		for i, t := range e {
			total[i] = total[i].Plus(t)
		}
	}
	fresh := j.remember(total)
	e := &j.out.Estimates
	for i, v := range j.in.Arms {
		e.Arms = append(e.Arms, ArmEstimate{Version: v, Subjects: total[i].N, Mean: total[i].Mean()})
		j.broken = j.broken || math.IsNaN(total[i].Mean()) || math.IsInf(total[i].Squares, 0)
	}
	if j.settings.Reward == nil || j.broken {
		return
	}
	rates := j.settings.Reward.Kind == job.Bernoulli
	normals, left, ok := policy.Strata(j.in.Matured, rates)
	e.LeftOut, e.Approximate = left, len(j.in.Matured) > 1
	if ok {
		e.normals = normals
		for i := range e.Arms {
			e.Arms[i].Mean = normals[i].M
		}
	}
	if j.settings.By() != job.ABBandit {
		j.compare()
	}
	if believe {
		j.believe(rates)
		j.surer(fresh)
	}
}

// remember adds what is new to the discounted tallies, and reports whether anything is.
func (j *judgement) remember(total []policy.Tally) (fresh bool) {
	p, gamma := &j.out.After, j.settings.Moving().Gamma
	faded := make([]policy.Tally, len(total))
	for i, t := range total {
		added := t
		if j.in.Before.Seen != nil {
			before := j.in.Before.Seen[i]
			added = t.Plus(before.Faded(-1))
			faded[i] = j.in.Before.Faded[i].Faded(gamma)
		}
		fresh = fresh || added.N > 0
		faded[i] = faded[i].Plus(added)
	}
	p.Seen, p.Faded = total, faded
	return fresh
}

// compare works out the differences to the control with their intervals.
func (j *judgement) compare() {
	test := j.test()
	k := len(j.in.Arms)
	j.out.After.P = make([]float64, k-1)
	for i := range k - 1 {
		j.out.After.P[i] = 1
		if len(j.in.Before.P) == k-1 {
			j.out.After.P[i] = j.in.Before.P[i]
		}
	}
	for i := 1; i < k; i++ {
		control, arm := make([]policy.Tally, 0, len(j.in.Matured)), make([]policy.Tally, 0, len(j.in.Matured))
		for _, e := range j.in.Matured {
			control, arm = append(control, e[0]), append(arm, e[i])
		}
		effect, ok := policy.Stratified(control, arm)
		if !ok {
			j.out.Estimates.effects = nil
			return
		}
		j.out.Estimates.effects = append(j.out.Estimates.effects, effect)
		lo, hi := effect.Interval(test.MDE, test.Alpha/float64(k-1))
		p := &j.out.After.P[i-1]
		if likelihood := effect.Likelihood(test.MDE); likelihood > 0 {
			*p = min(*p, 1/likelihood)
		}
		a := &j.out.Estimates.Arms[i]
		a.Difference, a.Lo, a.Hi, a.P = &effect.Difference, &lo, &hi, p
	}
}

// believe works out the posteriors: exact with one epoch, else from the means over the epochs; from discounted tallies
// when older rewards are forgotten.
func (j *judgement) believe(rates bool) {
	e := &j.out.Estimates
	faded := j.out.After.Faded
	for _, t := range faded {
		if t.N < enoughStrata {
			return
		}
	}
	var arms []policy.Posterior
	switch gamma := j.settings.Moving().Gamma; {
	case rates && (len(j.in.Matured) == 1 || gamma < 1):
		arms = policy.Betas(faded)
	case len(j.in.Matured) == 1 || gamma < 1:
		arms = policy.Gaussians(faded)
	case e.normals != nil:
		for _, n := range e.normals {
			arms = append(arms, n)
		}
	default:
		return
	}
	arms = policy.Turned(arms, j.settings.Reward.Direction == job.Down)
	best, err := policy.BestProbabilities(arms)
	if err != nil {
		j.broken = true
		return
	}
	loss := policy.ExpectedLoss(arms)
	e.posteriors = arms
	for i := range e.Arms {
		e.Arms[i].Best, e.Arms[i].Loss = &best[i], &loss[i]
	}
}
