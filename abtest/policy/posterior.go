package policy

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
)

// Posterior is the posterior distribution of the mean reward of an arm.
type Posterior interface {
	Prob(x float64) float64
	CDF(x float64) float64
	Mean() float64
	// Range holds all of the mass that a float64 can tell from nothing; its inner points cut it where the density
	// bends.
	Range() []float64
}

// Beta is the posterior of a rate: A is the prior's successes plus those seen, B the failures.
type Beta struct{ A, B float64 }

// Prob is the density at x.
func (b Beta) Prob(x float64) float64 { return distuv.Beta{Alpha: b.A, Beta: b.B}.Prob(x) }

// CDF is the mass up to x.
func (b Beta) CDF(x float64) float64 { return distuv.Beta{Alpha: b.A, Beta: b.B}.CDF(x) }

// Mean is the expected rate.
func (b Beta) Mean() float64 { return b.A / (b.A + b.B) }

// Range is the mean with twelve standard deviations on both sides, cut to [0, 1]; more of them where the density falls
// only exponentially, as with no success or no failure.
func (b Beta) Range() []float64 {
	m, sd := b.Mean(), distuv.Beta{Alpha: b.A, Beta: b.B}.StdDev()
	out := []float64{max(0, m-12*sd), max(0, m-4*sd), m, min(1, m+4*sd), min(1, m+12*sd)}
	const few, far = 20, 40
	if b.A < few {
		out = append(out, min(1, m+far*sd))
	}
	if b.B < few {
		out = append(out, max(0, m-far*sd))
	}
	slices.Sort(out)
	return out
}

// Normal is the posterior of a mean whose variance V is taken as known.
type Normal struct{ M, V float64 }

func (n Normal) dist() distuv.Normal { return distuv.Normal{Mu: n.M, Sigma: math.Sqrt(n.V)} }

// Prob is the density at x.
func (n Normal) Prob(x float64) float64 { return n.dist().Prob(x) }

// CDF is the mass up to x.
func (n Normal) CDF(x float64) float64 { return n.dist().CDF(x) }

// Mean is the expected mean.
func (n Normal) Mean() float64 { return n.M }

// Range is the mean with twelve standard deviations on both sides.
func (n Normal) Range() []float64 {
	sd := math.Sqrt(n.V)
	return []float64{n.M - 12*sd, n.M - 4*sd, n.M, n.M + 4*sd, n.M + 12*sd}
}

// NIG is the normal-inverse-gamma belief about a mean and a variance (Murphy, Conjugate Bayesian analysis of the
// Gaussian distribution, 2007, section 6).
type NIG struct{ M, K, A, B float64 }

// Add is the belief after n values of the given mean and sum of squared deviations from it.
func (p NIG) Add(n, mean, squares float64) NIG {
	if n == 0 {
		return p
	}
	k := p.K + n
	return NIG{
		M: (p.K*p.M + n*mean) / k,
		K: k,
		A: p.A + n/2,
		B: p.B + squares/2 + p.K*n*(mean-p.M)*(mean-p.M)/(2*k),
	}
}

// Scale is the scale of the marginal t distribution of the mean, which has 2A degrees of freedom.
func (p NIG) Scale() float64 { return math.Sqrt(p.B / (p.A * p.K)) }

func (p NIG) dist() distuv.StudentsT { return distuv.StudentsT{Mu: p.M, Sigma: p.Scale(), Nu: 2 * p.A} }

// Prob is the density of the mean at x.
func (p NIG) Prob(x float64) float64 { return p.dist().Prob(x) }

// CDF is the mass of the mean up to x.
func (p NIG) CDF(x float64) float64 { return p.dist().CDF(x) }

// Mean is the expected mean.
func (p NIG) Mean() float64 { return p.M }

// Range reaches far out: the tails of a t distribution are heavy.
func (p NIG) Range() []float64 {
	var out []float64
	for _, far := range []float64{1e6, 1e5, 1e4, 1e3, 100, 20, 5, 2} {
		out = append(out, p.M-far*p.Scale(), p.M+far*p.Scale())
	}
	out = append(out, p.M)
	slices.Sort(out)
	return out
}

// negated is the posterior of the reward turned around, for rewards that are better when they are lower.
func negated(p Posterior) Posterior {
	switch p := p.(type) {
	case Beta:
		return Beta{A: p.B, B: p.A}
	case Normal:
		return Normal{M: -p.M, V: p.V}
	case NIG:
		return NIG{M: -p.M, K: p.K, A: p.A, B: p.B}
	}
	return p
}

// Turned returns the posteriors so that higher is better: as they are, or negated for a reward whose direction is down.
func Turned(arms []Posterior, down bool) []Posterior {
	if !down {
		return arms
	}
	out := make([]Posterior, len(arms))
	for i, a := range arms {
		out[i] = negated(a)
	}
	return out
}

// ErrNotSummable is returned when the probabilities of being best do not add up to 1: the integrals cannot be trusted.
var ErrNotSummable = errors.New("the probabilities of being best do not add up to 1")

// BestProbabilities returns for each arm the probability that its mean is the highest: the integral of its density
// times the distribution functions of the others.
func BestProbabilities(arms []Posterior) ([]float64, error) {
	out, sum := make([]float64, len(arms)), 0.0
	for i, a := range arms {
		out[i] = integrate(breaks(arms, a.Range()), func(x float64) float64 {
			y := a.Prob(x)
			for j, other := range arms {
				if j != i && y != 0 {
					y *= other.CDF(x)
				}
			}
			return y
		})
		sum += out[i]
	}
	if !(math.Abs(sum-1) < 1e-6) {
		return nil, ErrNotSummable
	}
	for i := range out {
		out[i] /= sum
	}
	return out, nil
}

// ExpectedLoss returns for each arm how much mean reward is expected to be lost by choosing it instead of the best of
// the others: the integral of F_i (1 - product of the other F).
func ExpectedLoss(arms []Posterior) []float64 {
	var all []float64
	for _, a := range arms {
		all = append(all, a.Range()...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	out := make([]float64, len(arms))
	for i, a := range arms {
		out[i] = integrate(all, func(x float64) float64 {
			others := 1.0
			for j, other := range arms {
				if j != i {
					others *= other.CDF(x)
				}
			}
			return a.CDF(x) * (1 - others)
		})
	}
	return out
}

// breaks are the points of own and those of all arms that lie inside of it.
func breaks(arms []Posterior, own []float64) []float64 {
	out := slices.Clone(own)
	for _, a := range arms {
		for _, x := range a.Range() {
			if x > own[0] && x < own[len(own)-1] {
				out = append(out, x)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// nodes of Gauss-Legendre quadrature on each piece.
const nodes = 32

// integrate adds up the pieces between the points.
func integrate(points []float64, f func(float64) float64) float64 {
	sum := 0.0
	for i := 1; i < len(points); i++ {
		sum += quad.Fixed(f, points[i-1], points[i], nodes, quad.Legendre{}, 0)
	}
	return sum
}
