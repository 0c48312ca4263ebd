package job

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// ABMode is who changes the weights of a run.
type ABMode string

// The weights stay; they follow the rewards; or they follow a timetable.
const (
	ABTest   ABMode = "ab"
	ABBandit ABMode = "bandit"
	ABRamp   ABMode = "ramp"
)

// Decide is when an experiment with rewards is decided.
type Decide struct {
	Alpha      float64       `json:"alpha"`      // of a false win of an A/B test, over all arms and looks
	MDE        float64       `json:"mde"`        // the difference that matters
	MinEffect  float64       `json:"min_effect"` // the least difference of a win
	LossMax    *float64      `json:"loss_max,omitempty"`
	MinRuntime time.Duration `json:"min_runtime"`
	// MinSubjects is how many matured subjects every arm has at least.
	MinSubjects int           `json:"min_subjects"`
	MaxRuntime  time.Duration `json:"max_runtime"`
	OnTimeout   TimeoutAction `json:"on_timeout"`
}

// TimeoutAction is what happens when a run is not decided in time.
type TimeoutAction string

// The run is paused, ended with everybody on the control, or goes on.
const (
	TimeoutPause    TimeoutAction = "pause"
	TimeoutRollback TimeoutAction = "rollback"
	TimeoutContinue TimeoutAction = "continue"
)

// Bandit is how the weights of a bandit follow the rewards.
type Bandit struct {
	Kind       string        `json:"kind"` // of abtest/policy; empty: Thompson sampling for the kind of the reward
	Epsilon    float64       `json:"epsilon"`
	Gamma      float64       `json:"gamma"` // the share of older rewards that a tick remembers
	MinWeight  float64       `json:"min_weight"`
	MaxStep    float64       `json:"max_step"`
	ExploreFor time.Duration `json:"explore_for"`
	ExploreMin int           `json:"explore_min"` // matured subjects of every arm before weights move
	EpochMin   int           `json:"epoch_min"`   // and of the running epoch
}

// RampStep is the share of the newest arm, and how long it stays.
type RampStep struct {
	Weight float64       `json:"weight"`
	Hold   time.Duration `json:"hold"`
}

// Guardrail is what an arm must not do whatever its rewards.
type Guardrail struct {
	Name string        `json:"name"`
	Kind GuardrailKind `json:"kind"`
	// SQL is a PostgreSQL query for arm, n, value and, unless values are rates, variance.
	SQL       string          `json:"sql"`
	Direction Direction       `json:"direction"` // which values are better
	Limit     *float64        `json:"limit,omitempty"`
	Margin    float64         `json:"margin"`
	MinN      int             `json:"min_n"`
	Every     time.Duration   `json:"every"`
	Action    GuardrailAction `json:"action"`
	// How many failures are borne, how many errors in a row, and how many looks in a row without data.
	FailureLimit int `json:"failure_limit"`
	ErrorLimit   int `json:"error_limit"`
	NoDataLimit  int `json:"no_data_limit"`
}

// GuardrailKind is what the value of an arm is compared with.
type GuardrailKind string

// A limit, the control, or the control in proportion to it.
const (
	Threshold      GuardrailKind = "threshold"
	NonInferiority GuardrailKind = "noninferiority"
	Relative       GuardrailKind = "relative"
)

// GuardrailAction is what a breach does.
type GuardrailAction string

// Everybody goes back to the control and the run ends, the run is paused, or it is only noted.
const (
	GuardRollback GuardrailAction = "rollback"
	GuardPause    GuardrailAction = "pause"
	GuardWarn     GuardrailAction = "warn"
)

// DefaultBandit are the settings of a bandit whose file has none.
func DefaultBandit() Bandit {
	return Bandit{
		Epsilon: 0.1, Gamma: 1, MinWeight: 0.05, MaxStep: 0.1, ExploreFor: time.Hour, ExploreMin: 100,
		EpochMin: 25,
	}
}

// DefaultDecide are the settings of an experiment that has rewards and no decide.
func DefaultDecide() Decide {
	return Decide{
		Alpha: 0.05, MinRuntime: 24 * time.Hour, MinSubjects: 400, MaxRuntime: 14 * 24 * time.Hour, OnTimeout: TimeoutPause,
	}
}

func decideKeys(to **Decide) strict.Value {
	c := DefaultDecide()
	var loss float64
	return strict.Then(strict.Mapping(
		strict.Key{Name: "alpha", Value: number(&c.Alpha, 1e-6, 0.5)},
		strict.Key{Name: "mde", Value: number(&c.MDE, 1e-12, math.MaxFloat64)},
		strict.Key{Name: "min_effect", Value: number(&c.MinEffect, 0, math.MaxFloat64)},
		strict.Key{Name: "loss_max", Value: strict.Then(number(&loss, 1e-12, math.MaxFloat64),
			func(*strict.Document, string) { c.LossMax = &loss })},
		strict.Key{Name: "min_runtime", Value: duration(&c.MinRuntime, 0, maxDays)},
		strict.Key{Name: "min_subjects", Value: strict.Int(&c.MinSubjects, 2, 1_000_000_000)},
		strict.Key{Name: "max_runtime", Value: duration(&c.MaxRuntime, time.Second, maxDays)},
		strict.Key{Name: "on_timeout", Value: strict.OneOf(&c.OnTimeout, TimeoutPause, TimeoutRollback, TimeoutContinue)},
	), func(*strict.Document, string) { *to = &c })
}

func banditKeys(to **Bandit) strict.Value {
	b := DefaultBandit()
	return strict.Then(strict.Mapping(
		strict.Key{Name: "kind", Value: strict.OneOf(&b.Kind, "epsilon-greedy", "ucb1", thompsonBeta, "thompson-gaussian")},
		strict.Key{Name: "epsilon", Value: number(&b.Epsilon, 0, 1)},
		strict.Key{Name: "gamma", Value: number(&b.Gamma, 1e-6, 1)},
		strict.Key{Name: "min_weight", Value: number(&b.MinWeight, 0, 0.5)},
		strict.Key{Name: "max_step", Value: number(&b.MaxStep, 1e-6, 1)},
		strict.Key{Name: "explore_for", Value: duration(&b.ExploreFor, 0, maxDays)},
		strict.Key{Name: "explore_min", Value: strict.Int(&b.ExploreMin, 2, 1_000_000_000)},
		strict.Key{Name: "epoch_min", Value: strict.Int(&b.EpochMin, 2, 1_000_000_000)},
	), func(*strict.Document, string) { *to = &b })
}

const thompsonBeta = "thompson-beta"

func rampList(to *[]RampStep) strict.Value {
	return strict.Each(func() strict.Value {
		var s RampStep
		return strict.Then(strict.Mapping(
			strict.Key{Name: "weight", Required: true, Value: number(&s.Weight, 0, 1)},
			strict.Key{Name: "hold", Required: true, Value: duration(&s.Hold, time.Second, maxDays)},
		), func(*strict.Document, string) { *to = append(*to, s) })
	})
}

// guardrailList takes a list of guardrails, or none.
func guardrailList(e *Experiment) strict.Value {
	var word string
	none := strict.Parsed("none", &word, func(text string) (string, error) {
		if text != "none" {
			return "", strict.Want(fmt.Sprintf("unknown value %q", text), "write a list of guardrails, or none")
		}
		return text, nil
	})
	list := strict.Each(func() strict.Value {
		g := Guardrail{Direction: Down, MinN: 100, Every: time.Minute, Action: GuardRollback, ErrorLimit: 4, NoDataLimit: 10}
		var limit float64
		return strict.Then(strict.Mapping(
			strict.Key{Name: "name", Required: true, Value: strict.Parsed("guardrail name", &g.Name, labelName)},
			strict.Key{Name: "kind", Required: true, Value: strict.OneOf(&g.Kind, Threshold, NonInferiority, Relative)},
			strict.Key{Name: "sql", Required: true, Value: strict.Parsed("query", &g.SQL, rewardSQL)},
			strict.Key{Name: "direction", Value: strict.OneOf(&g.Direction, Up, Down)},
			strict.Key{Name: "limit", Value: strict.Then(number(&limit, -math.MaxFloat64, math.MaxFloat64),
				func(*strict.Document, string) { g.Limit = &limit })},
			strict.Key{Name: "margin", Value: number(&g.Margin, 0, math.MaxFloat64)},
			strict.Key{Name: "min_n", Value: strict.Int(&g.MinN, 1, 1_000_000_000)},
			strict.Key{Name: "every", Value: duration(&g.Every, time.Second, 24*time.Hour)},
			strict.Key{Name: "action", Value: strict.OneOf(&g.Action, GuardRollback, GuardPause, GuardWarn)},
			strict.Key{Name: "failure_limit", Value: strict.Int(&g.FailureLimit, 0, 1000)},
			strict.Key{Name: "error_limit", Value: strict.Int(&g.ErrorLimit, 0, 1000)},
			strict.Key{Name: "no_data_limit", Value: strict.Int(&g.NoDataLimit, 0, 100_000)},
		), func(d *strict.Document, path string) {
			switch {
			case slices.ContainsFunc(e.Guardrails, func(o Guardrail) bool { return o.Name == g.Name }):
				d.RefuseAt(path+".name", fmt.Sprintf("guardrail %q occurs twice", g.Name), "give each guardrail a name of its own")
			case (g.Kind == Threshold) != (g.Limit != nil):
				d.RefuseAt(path, "a limit is what a threshold has, and only that",
					"write limit: for kind threshold, margin: for the other kinds")
			default:
				e.Guardrails = append(e.Guardrails, g)
			}
		})
	})
	list.Schema["minItems"] = 1
	return strict.Either(strict.Then(none, func(*strict.Document, string) { e.NoGuardrails = true }), list)
}

// checkExperiment refuses settings that do not go together.
func checkExperiment(d *strict.Document, path string, e *Experiment) {
	refuse := func(key, cause, cure string) { d.RefuseAt(strict.Join(path, key), cause, cure) }
	mode, arms := e.By(), max(2, len(e.Weights))
	switch {
	case e.Assign == AssignHash && mode != ABTest && d.Node(path+".assign") != nil:
		refuse("assign", "weights of mode "+string(mode)+" change, and with hash they stay", "write sticky, or remove it")
	case e.Policy != nil && mode != ABBandit:
		refuse("policy", "a policy is for mode bandit", "write mode: bandit, or remove it")
	case (len(e.Ramp) > 0) != (mode == ABRamp):
		refuse("ramp", "mode ramp has steps, and only that mode has",
			"write mode: ramp and ramp: [{weight: 0.05, hold: 1h}, {weight: 0.5, hold: 1d}]")
	case e.Reward == nil && mode == ABBandit:
		refuse("reward", "a bandit follows rewards", "write reward: {kind: bernoulli, source: http}")
	case e.Reward == nil && e.Decide != nil:
		refuse("decide", "without rewards there is nothing to decide", "add reward, or remove it")
	case e.Reward != nil && mode == ABTest && (e.Decide == nil || e.Decide.MDE == 0):
		refuse("decide", "an A/B test with rewards needs the difference that matters", "write decide: {mde: 0.02}")
	case e.Policy != nil && e.Policy.Kind == thompsonBeta && e.Reward.Kind != Bernoulli:
		refuse("policy.kind", "thompson-beta is for rewards of kind bernoulli", "write thompson-gaussian")
	case e.Policy != nil && e.Policy.Kind == "ucb1" && e.Reward.Kind != Bernoulli && e.Reward.Clip == nil:
		refuse("policy.kind", "ucb1 needs to know between which values rewards lie", "write reward.clip: [0, 100]")
	case e.Policy != nil && e.Policy.MinWeight*float64(arms) >= 1:
		refuse("policy.min_weight", fmt.Sprintf("with %d arms nothing would be left to move", arms),
			fmt.Sprintf("write less than %v", 1/float64(arms)))
	case e.Promote == PromoteAuto && len(e.Guardrails) == 0 && !e.NoGuardrails:
		refuse("promote", "nothing would watch over what is promoted by itself", "add guardrails, or write guardrails: none")
	case e.Promote == PromoteAuto && mode == ABBandit && (e.Decide == nil || e.Decide.LossMax == nil):
		refuse("promote", "a bandit that promotes by itself needs the loss that it may cost",
			"write decide: {loss_max: 0.0005}")
	}
}

// By is who changes the weights.
func (e Experiment) By() ABMode {
	if e.Mode == "" {
		return ABTest
	}
	return e.Mode
}

// Look is the time between two looks.
func (e Experiment) Look() time.Duration {
	if e.Tick == 0 {
		return time.Minute
	}
	return e.Tick
}

// Watched reports whether a run of these settings is looked at: with rewards, guardrails or steps.
func (e Experiment) Watched() bool {
	return e.Reward != nil || len(e.Guardrails) > 0 || e.By() == ABRamp
}

// Deciding are the settings of decide, or its defaults.
func (e Experiment) Deciding() Decide {
	if e.Decide == nil {
		return DefaultDecide()
	}
	return *e.Decide
}

// Moving are the settings of policy, or its defaults, with a kind.
func (e Experiment) Moving() Bandit {
	b := DefaultBandit()
	if e.Policy != nil {
		b = *e.Policy
	}
	if b.Kind == "" {
		if b.Kind = thompsonBeta; e.Reward != nil && e.Reward.Kind == Gaussian {
			b.Kind = "thompson-gaussian"
		}
	}
	return b
}
