package policy

import (
	"errors"
	"math"
)

// Kind is how weights follow rewards.
type Kind string

// The policies.
const (
	EpsilonGreedy    Kind = "epsilon-greedy"
	UCB1             Kind = "ucb1"
	ThompsonBeta     Kind = "thompson-beta"
	ThompsonGaussian Kind = "thompson-gaussian"
)

// Kinds lists the policies.
func Kinds() []Kind { return []Kind{EpsilonGreedy, UCB1, ThompsonBeta, ThompsonGaussian} }

// Tally is the reward of an arm's matured subjects. Discounted tallies are fractions.
type Tally struct {
	N       float64 `json:"n"`
	Sum     float64 `json:"sum"`
	Squares float64 `json:"squares"` // the sum of the squared rewards
}

// Mean is the mean reward; 0 without subjects.
func (t Tally) Mean() float64 {
	if t.N == 0 {
		return 0
	}
	return t.Sum / t.N
}

// Variance is the variance over the subjects, divided by their number.
func (t Tally) Variance() float64 {
	if t.N == 0 {
		return 0
	}
	return max(0, t.Squares/t.N-t.Mean()*t.Mean())
}

// Plus adds two tallies.
func (t Tally) Plus(o Tally) Tally {
	return Tally{N: t.N + o.N, Sum: t.Sum + o.Sum, Squares: t.Squares + o.Squares}
}

// Faded is the tally of which share gamma is remembered.
func (t Tally) Faded(gamma float64) Tally {
	return Tally{N: t.N * gamma, Sum: t.Sum * gamma, Squares: t.Squares * gamma}
}

// Rules are the settings of a policy.
type Rules struct {
	Kind    Kind
	Epsilon float64 // of epsilon-greedy
	Batch   int     // of ucb1: the subjects expected until the next change, at most 10,000
	Down    bool    // lower rewards are better
	// The span of rewards, for ucb1: they are scaled to [0, 1].
	Lo, Hi float64
}

// ErrUndefined is returned when a target would not be a number: the weights stay.
var ErrUndefined = errors.New("a weight is not a number")

// Targets are the weights that the policy wants, before a floor and the limit of a step.
func (r Rules) Targets(arms []Tally) ([]float64, error) {
	out, err := r.targets(arms)
	if err != nil {
		return nil, err
	}
	for _, w := range out {
		if math.IsNaN(w) || math.IsInf(w, 0) {
			return nil, ErrUndefined
		}
	}
	return out, nil
}

func (r Rules) targets(arms []Tally) ([]float64, error) {
	switch r.Kind {
	case EpsilonGreedy:
		return epsilonGreedy(r.better(arms), r.Epsilon), nil
	case UCB1:
		return ucb1(r.scaled(arms), arms, r.Batch), nil
	case ThompsonBeta:
		return BestProbabilities(Turned(Betas(arms), r.Down))
	case ThompsonGaussian:
		return BestProbabilities(Turned(Gaussians(arms), r.Down))
	}
	return nil, errors.New("unknown policy " + string(r.Kind))
}

// Betas are the posteriors of rates, from the prior Beta(1, 1).
func Betas(arms []Tally) []Posterior {
	out := make([]Posterior, len(arms))
	for i, t := range arms {
		out[i] = Beta{A: 1 + t.Sum, B: 1 + t.N - t.Sum}
	}
	return out
}

// Gaussians are the posteriors of means, from the prior NIG(0, 1, 1, 1).
func Gaussians(arms []Tally) []Posterior {
	out := make([]Posterior, len(arms))
	for i, t := range arms {
		out[i] = NIG{M: 0, K: 1, A: 1, B: 1}.Add(t.N, t.Mean(), t.Variance()*t.N)
	}
	return out
}

// better are the means turned so that higher is better.
func (r Rules) better(arms []Tally) []float64 {
	out := make([]float64, len(arms))
	for i, t := range arms {
		if out[i] = t.Mean(); r.Down {
			out[i] = -out[i]
		}
	}
	return out
}

// scaled are the means in [0, 1], turned so that higher is better.
func (r Rules) scaled(arms []Tally) []float64 {
	out := make([]float64, len(arms))
	for i, t := range arms {
		out[i] = t.Mean()
		if r.Hi > r.Lo {
			out[i] = min(1, max(0, (out[i]-r.Lo)/(r.Hi-r.Lo)))
		}
		if r.Down {
			out[i] = 1 - out[i]
		}
	}
	return out
}

// epsilonGreedy gives the arms with the highest mean 1 - epsilon in equal parts, and each arm its part of epsilon.
func epsilonGreedy(means []float64, epsilon float64) []float64 {
	top, ties := math.Inf(-1), 0
	for _, m := range means {
		switch {
		case m > top:
			top, ties = m, 1
		case m == top:
			ties++
		}
	}
	out := make([]float64, len(means))
	for i, m := range means {
		out[i] = epsilon / float64(len(means))
		if m == top {
			out[i] += (1 - epsilon) / float64(ties)
		}
	}
	return out
}

// maxPulls bounds the replay of ucb1.
const maxPulls = 10_000

// index is the upper confidence bound of an arm; one that was never pulled comes first.
func index(mean, n, all float64) float64 {
	if n == 0 {
		return math.Inf(1)
	}
	return mean + math.Sqrt(2*math.Log(all)/n)
}

// ucb1 pulls a batch virtually, with the means as they are, and returns each arm's share of the pulls: a whole batch
// must not go to the one arm whose bound is the highest now (Auer, Cesa-Bianchi, Fischer, 2002).
func ucb1(means []float64, arms []Tally, batch int) []float64 {
	batch = min(max(1, batch), maxPulls)
	counts, all := make([]float64, len(arms)), 0.0
	for i, t := range arms {
		counts[i] = t.N
		all += t.N
	}
	out := make([]float64, len(arms))
	for range batch {
		best := 0
		for i := range arms {
			if index(means[i], counts[i], all) > index(means[best], counts[best], all) {
				best = i
			}
		}
		counts[best]++
		all++
		out[best] += 1 / float64(batch)
	}
	return out
}
