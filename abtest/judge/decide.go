package judge

import (
	"math"
	"slices"

	"github.com/kappactl/kappactl/abtest/policy"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// decided looks for harm, then for a win.
func (j *judgement) decided() bool {
	if !j.in.Refused.IsZero() {
		return j.is(Freeze, reason.ABPromoteRefused(j.in.Refused))
	}
	switch {
	case j.settings.Reward == nil:
		return j.ramped()
	case j.settings.By() == job.ABBandit:
		return j.confident()
	}
	return j.sequential()
}

// sequential decides by the confidence sequences of the differences. With weights that have changed it is an
// approximation.
func (j *judgement) sequential() bool {
	effects := j.out.Estimates.effects
	if len(effects) != len(j.in.Arms)-1 {
		return false
	}
	test := j.test()
	switch v, best := test.Decide(effects); v {
	case policy.Harm:
		return j.is(Rollback, reason.ABHarm(j.in.Arms[0]))
	case policy.Win:
		j.out.Arm = j.in.Arms[best]
		e := j.out.Estimates.Arms[best]
		return j.is(Win, reason.ABWon(j.out.Arm, *e.Difference, *e.Lo, *e.Hi))
	case policy.Undecided:
	}
	return false
}

func (j *judgement) test() policy.Sequential {
	d := j.settings.Deciding()
	return policy.Sequential{
		Alpha: d.Alpha, MDE: d.MDE, MinEffect: d.MinEffect,
		Down: j.settings.Reward.Direction == job.Down,
	}
}

// lossMax is the mean reward that a verdict of a bandit may cost.
func (j *judgement) lossMax() float64 {
	if most := j.settings.Deciding().LossMax; most != nil {
		return *most
	}
	return lossOfMean * math.Abs(j.out.Estimates.Arms[0].Mean)
}

// confident decides by the probability of being the best, at three looks in a row that each had new subjects.
func (j *judgement) confident() bool {
	p := &j.out.After
	if p.Sure < sureLooks {
		return false
	}
	if p.Best == j.in.Arms[0] {
		return j.is(Rollback, reason.ABHarm(p.Best))
	}
	j.out.Arm = p.Best
	e := j.out.Estimates.Arms[slices.Index(j.in.Arms, p.Best)]
	return j.is(Win, reason.ABBest(p.Best, *e.Best, *e.Loss))
}

// surer counts the looks at which one arm was surely the best.
func (j *judgement) surer(fresh bool) {
	p := &j.out.After
	arms := j.out.Estimates.Arms
	var best, loss []float64
	for _, a := range arms {
		if a.Best == nil {
			p.Sure, p.Best = 0, ""
			return
		}
		best, loss = append(best, *a.Best), append(loss, *a.Loss)
	}
	v, i := policy.Confident{P: surelyBest, LossMax: j.lossMax()}.Decide(best, loss)
	switch {
	case v == policy.Undecided:
		p.Sure, p.Best = 0, ""
	case p.Best != j.in.Arms[i]:
		p.Sure, p.Best = 1, j.in.Arms[i]
	case fresh:
		p.Sure++
	}
}

// ramped ends a ramp without rewards: every step was held, and no guardrail was breached.
func (j *judgement) ramped() bool {
	if j.settings.By() != job.ABRamp || j.step() < len(j.settings.Ramp) {
		return false
	}
	j.out.Arm = j.in.Arms[len(j.in.Arms)-1]
	return j.is(Win, reason.ABRamped(j.out.Arm))
}

// step is the number of steps of the ramp that are over.
func (j *judgement) step() int {
	left := j.in.Age
	for i, s := range j.settings.Ramp {
		if left < s.Hold {
			return i
		}
		left -= s.Hold
	}
	return len(j.settings.Ramp)
}

// move changes the weights: after the rewards, or to the step of the ramp. What keeps them where they are is the
// reason.
func (j *judgement) move() {
	switch j.settings.By() {
	case job.ABTest:
	case job.ABRamp:
		i := min(j.step(), len(j.settings.Ramp)-1)
		j.weigh(RampWeights(policy.Shares(j.in.Weights), j.settings.Ramp[i].Weight))
	case job.ABBandit:
		if why := j.held(); !why.IsZero() {
			j.out.Reason = why
			return
		}
		b := j.settings.Moving()
		target, err := j.targets(b)
		if err != nil {
			j.is(Freeze, reason.ABNoNumber())
			return
		}
		floor := min(b.MinWeight, 1/float64(len(j.in.Arms)))
		j.weigh(policy.Step(policy.Shares(j.in.Weights), policy.WithFloor(target, floor), b.MaxStep))
	}
}

func (j *judgement) weigh(to []float64) {
	if ppm := policy.PPM(to); !slices.Equal(ppm, j.in.Weights) {
		j.out.Verdict, j.out.Weights = Move, ppm
	}
}

// RampWeights give the last arm its share and the others the rest, as it was shared between them.
func RampWeights(weights []float64, newest float64) []float64 {
	out := slices.Clone(weights)
	last := len(out) - 1
	rest := 1 - out[last]
	for i := range out[:last] {
		if rest > 0 {
			out[i] *= (1 - newest) / rest
		} else {
			out[i] = (1 - newest) / float64(last)
		}
	}
	out[last] = newest
	return out
}

// held is why the weights of a bandit stay; zero: they may move.
func (j *judgement) held() reason.Reason {
	b := j.settings.Moving()
	if j.in.Age < b.ExploreFor {
		return reason.ABExplores(b.ExploreFor - j.in.Age)
	}
	now := j.in.Matured[len(j.in.Matured)-1]
	spread := false
	for i, t := range j.out.After.Seen {
		if t.N < float64(b.ExploreMin) {
			return reason.ABSubjects(j.in.Arms[i], t.N, b.ExploreMin)
		}
		if now[i].N < float64(b.EpochMin) {
			return reason.ABSubjects(j.in.Arms[i], now[i].N, b.EpochMin)
		}
		spread = spread || t.Variance() > 0
	}
	if !spread {
		return reason.ABConstant()
	}
	return reason.Reason{}
}

// targets are the weights that the policy wants.
func (j *judgement) targets(b job.Bandit) ([]float64, error) {
	r := j.settings.Reward
	rules := policy.Rules{
		Kind: policy.Kind(b.Kind), Epsilon: b.Epsilon, Down: r.Direction == job.Down, Batch: j.batch(),
		Lo: 0, Hi: 1,
	}
	if r.Clip != nil {
		rules.Lo, rules.Hi = r.Clip[0], r.Clip[1]
	}
	if rules.Kind == policy.ThompsonBeta || rules.Kind == policy.ThompsonGaussian {
		if j.out.Estimates.posteriors == nil {
			return nil, policy.ErrUndefined
		}
		return policy.BestProbabilities(j.out.Estimates.posteriors)
	}
	arms := slices.Clone(j.out.After.Faded)
	for i := range arms { // as many subjects, with the mean over the epochs
		if normal := j.out.Estimates.normals; normal != nil && b.Gamma == 1 {
			arms[i].Sum = normal[i].M * arms[i].N
		}
	}
	return rules.Targets(arms)
}

// batch is how many subjects the next look is expected to find: as many as this one has.
func (j *judgement) batch() int {
	n := 0.0
	for i, t := range j.out.After.Seen {
		n += t.N
		if before := j.in.Before.Seen; before != nil {
			n -= before[i].N
		}
	}
	return int(min(max(n, 1), 10_000))
}
