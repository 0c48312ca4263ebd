package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/kappactl/kappactl/abtest/policy"
)

// Arm is an arm with its true mean reward.
type Arm struct {
	Name string
	Mean float64
}

// Plan holds the settings of a simulation. The first arm is the control.
type Plan struct {
	Arms    []Arm
	Weights []float64 // at the beginning
	// SD is the standard deviation of rewards; 0: rewards are 1 with probability Mean, else 0.
	SD      float64
	Policy  *policy.Rules // nil: the weights stay, as in an A/B test
	Batches int
	Batch   int // subjects in a batch

	// Of a policy.
	MinWeight  float64
	MaxStep    float64
	Gamma      float64 // the share of older rewards that each batch remembers
	ExploreMin float64 // subjects of each arm before weights move

	// Of the decision.
	Down        bool
	Sequential  policy.Sequential // without a policy
	Confident   policy.Confident  // with one
	InARow      int               // batches in which a bandit must be confident
	MinSubjects float64

	Seed uint64
}

// Step is the state after a batch.
type Step struct {
	Batch    int       `json:"batch"`
	Weights  []float64 `json:"weights"` // that the batch was split by
	Subjects []int64   `json:"subjects"`
	Means    []float64 `json:"means"` // of all rewards so far
	// Best are the probabilities of being the best arm; only with a policy.
	Best []float64 `json:"best,omitempty"`
	// Effects of the arms against the control; only without a policy.
	Effects []policy.Effect `json:"effects,omitempty"`
}

// Run is one simulated experiment.
type Run struct {
	Steps   []Step          `json:"steps"`
	Verdict policy.Verdict  `json:"verdict"`
	Arm     string          `json:"arm"`   // that wins; the control of a harm; empty while undecided
	Batch   int             `json:"batch"` // of the verdict; 0 while undecided
	Ratio   policy.Mismatch `json:"sample_ratio"`
	Shares  []float64       `json:"shares"` // of all subjects, by arm
	Reward  float64         `json:"reward"` // mean over all subjects
}

// state is a run under way.
type state struct {
	Plan
	random  *rand.Rand
	salt    string
	weights []float64
	total   []policy.Tally // what the estimates are made of, faded by Gamma
	ever    []policy.Tally
	epochs  []policy.Epoch
	sure    int // batches in a row in which the bandit was confident
	out     Run
}

// Simulate runs the plan once. The same plan and number give the same run. Weights that cannot be computed stay as
// they are.
func Simulate(p Plan, number int) (Run, error) {
	s := &state{
		Plan: p, random: rand.New(rand.NewPCG(p.Seed, uint64(number))), //nolint:gosec // synthetic rewards
		salt:    policy.ArmSalt("simulate", fmt.Sprintf("%d-%d", p.Seed, number)),
		weights: p.Weights, total: make([]policy.Tally, len(p.Arms)), ever: make([]policy.Tally, len(p.Arms)),
		out: Run{Verdict: policy.Undecided},
	}
	for n := 1; n <= p.Batches; n++ {
		step, err := s.batch(n)
		if err != nil {
			return Run{}, fmt.Errorf("batch %d: %w", n, err)
		}
		s.out.Steps = append(s.out.Steps, step)
	}
	s.out.Ratio = policy.SampleRatio(s.epochs)
	var all policy.Tally
	for _, t := range s.ever {
		all = all.Plus(t)
	}
	for _, t := range s.ever {
		s.out.Shares = append(s.out.Shares, t.N/all.N)
	}
	s.out.Reward = all.Mean()
	return s.out, nil
}

// batch draws the rewards of one batch, evaluates them, and moves the weights.
func (s *state) batch(n int) (Step, error) {
	ppm := policy.PPM(s.weights)
	drawn := s.draw(n, policy.Cuts(ppm))
	step := Step{Batch: n, Weights: policy.Shares(ppm), Subjects: make([]int64, len(drawn))}
	for i, t := range drawn {
		if s.Policy != nil {
			s.total[i] = s.total[i].Faded(s.Gamma)
		}
		s.total[i], s.ever[i] = s.total[i].Plus(t), s.ever[i].Plus(t)
		step.Subjects[i] = int64(t.N)
		step.Means = append(step.Means, s.ever[i].Mean())
	}
	s.note(step)
	if s.Policy == nil {
		s.test(&step)
		return step, nil
	}
	return step, s.adapt(&step)
}

// note adds the subjects of a step to the epoch of its weights.
func (s *state) note(step Step) {
	if n := len(s.epochs); n > 0 && same(s.epochs[n-1].Weights, step.Weights) {
		for i, subjects := range step.Subjects {
			s.epochs[n-1].Subjects[i] += subjects
		}
		return
	}
	s.epochs = append(s.epochs, policy.Epoch{Weights: step.Weights, Subjects: append([]int64{}, step.Subjects...)})
}

func same(a, b []float64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// draw assigns a batch of subjects and draws their rewards.
func (s *state) draw(n int, cuts []int) []policy.Tally {
	out := make([]policy.Tally, len(s.Arms))
	for i := range s.Batch {
		arm := policy.ArmOf(cuts, policy.Bucket(s.salt, strconv.Itoa(n)+"-"+strconv.Itoa(i)))
		reward := s.reward(s.Arms[arm].Mean)
		out[arm] = out[arm].Plus(policy.Tally{N: 1, Sum: reward, Squares: reward * reward})
	}
	return out
}

func (s *state) reward(mean float64) float64 {
	if s.SD > 0 {
		return mean + s.SD*s.random.NormFloat64()
	}
	if s.random.Float64() < mean {
		return 1
	}
	return 0
}

// decide keeps the first verdict.
func (s *state) decide(v policy.Verdict, arm, batch int) {
	if v == policy.Undecided || s.out.Verdict != policy.Undecided {
		return
	}
	s.out.Verdict, s.out.Arm, s.out.Batch = v, s.Arms[arm].Name, batch
}

// enough reports whether every arm has so many subjects.
func (s *state) enough(subjects float64) bool {
	for _, t := range s.ever {
		if t.N < subjects {
			return false
		}
	}
	return true
}

// test evaluates an A/B test.
func (s *state) test(step *Step) {
	for _, t := range s.total[1:] {
		e, _ := policy.Stratified(s.total[:1], []policy.Tally{t})
		step.Effects = append(step.Effects, e)
	}
	if s.enough(s.MinSubjects) {
		v, arm := s.Sequential.Decide(step.Effects)
		s.decide(v, arm, step.Batch)
	}
}

// adapt moves the weights and evaluates a bandit.
func (s *state) adapt(step *Step) error {
	arms := s.posteriors()
	best, err := policy.BestProbabilities(arms)
	if err != nil {
		return err
	}
	step.Best = best
	v, arm := policy.Undecided, 0
	if slices.Max(best) >= s.Confident.P {
		v, arm = s.Confident.Decide(best, policy.ExpectedLoss(arms))
	}
	if s.sure++; v == policy.Undecided {
		s.sure = 0
	}
	if s.sure >= s.InARow && s.enough(s.MinSubjects) {
		s.decide(v, arm, step.Batch)
	}
	if !s.enough(s.ExploreMin) {
		return nil
	}
	targets, err := s.Policy.Targets(s.total)
	if err != nil {
		return err
	}
	s.weights = policy.Step(s.weights, policy.WithFloor(targets, s.MinWeight), s.MaxStep)
	return nil
}

// posteriors are what is believed about the arms, turned so that higher is better.
func (s *state) posteriors() []policy.Posterior {
	if s.SD > 0 {
		return policy.Turned(policy.Gaussians(s.total), s.Down)
	}
	return policy.Turned(policy.Betas(s.total), s.Down)
}
