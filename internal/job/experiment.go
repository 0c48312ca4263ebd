package job

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// Experiment is how the readers of a job are split between its versions.
type Experiment struct {
	// Weights are the shares of the arms; none: the live version and the candidate, equally.
	Weights  []ArmWeight `json:"weights,omitempty"`
	Coverage float64     `json:"coverage"` // the share of subjects in the experiment, above 0; others read the control
	Assign   Assign      `json:"assign"`

	Mode    ABMode `json:"mode,omitempty"`    // empty: ab
	Subject string `json:"subject,omitempty"` // what subjects are, such as user_id, for people and for records of rewards
	// Reward is what arms are compared by; nil: nothing is decided.
	Reward *Reward `json:"reward,omitempty"`
	// Guardrails watch over the arms. NoGuardrails: the file wants none.
	Guardrails   []Guardrail `json:"guardrails,omitempty"`
	NoGuardrails bool        `json:"no_guardrails,omitempty"`
	Decide       *Decide     `json:"decide,omitempty"`
	Policy       *Bandit     `json:"policy,omitempty"`
	Ramp         []RampStep  `json:"ramp,omitempty"`
	Promote      PromoteMode `json:"promote,omitempty"` // empty: manual
	// Tick is the time between two looks; 0: a minute.
	Tick time.Duration `json:"tick,omitempty"`
}

// ArmWeight is the share of the subjects that read a version, from 0 to 1.
type ArmWeight struct {
	Version Number  `json:"version"`
	Weight  float64 `json:"weight"`
}

// Assign is what keeps a subject on its arm.
type Assign string

// A subject keeps its arm because the weights of a run stay as they are, or because its first arm is stored.
const (
	AssignHash   Assign = "hash"
	AssignSticky Assign = "sticky"
)

// Assigns lists every Assign.
func Assigns() []Assign { return []Assign{AssignHash, AssignSticky} }

// MaxArms is how many versions an experiment has at most.
const MaxArms = 8

// DefaultExperiment are the settings of a job whose file has no experiment.
func DefaultExperiment() Experiment { return Experiment{Coverage: 1, Assign: AssignHash} }

// weightSlack is how far the sum of weights may be from 1.
const weightSlack = 1e-9

// CheckWeights returns why weights are no split between arms: too few or many of them, one that is no share, or a sum
// that is not 1.
func CheckWeights(weights []ArmWeight) error {
	if len(weights) < 2 || len(weights) > MaxArms {
		return fmt.Errorf("an experiment has 2 to %d arms, not %d", MaxArms, len(weights))
	}
	sum, seen := 0.0, map[Number]bool{}
	for _, w := range weights {
		if math.IsNaN(w.Weight) || w.Weight < 0 || w.Weight > 1 {
			return fmt.Errorf("the weight of %s is %v: a weight is a number from 0 to 1", w.Version, w.Weight)
		}
		if seen[w.Version] {
			return fmt.Errorf("%s has two weights", w.Version)
		}
		seen[w.Version] = true
		sum += w.Weight
	}
	if math.Abs(sum-1) > weightSlack {
		return fmt.Errorf("the weights add up to %v, not to 1", math.Round(sum*1e9)/1e9)
	}
	return nil
}

func experimentKeys(to **Experiment) strict.Value {
	e := DefaultExperiment()
	coverage := strict.Written("share", &e.Coverage, func(text string) (float64, error) {
		v, err := parseShare(text)
		if err == nil && v == 0 {
			err = strict.Want("a coverage of 0 leaves nobody in the experiment", "write a number above 0, up to 1")
		}
		return v, err
	})
	coverage.Schema = shareSchema()
	return strict.Then(strict.Mapping(
		strict.Key{Name: "mode", Value: strict.OneOf(&e.Mode, ABTest, ABBandit, ABRamp)},
		strict.Key{Name: "weights", Value: weightMap(&e.Weights)},
		strict.Key{Name: "coverage", Value: coverage},
		strict.Key{Name: "assign", Value: strict.OneOf(&e.Assign, Assigns()...)},
		strict.Key{Name: "subject", Value: strict.Text(&e.Subject)},
		strict.Key{Name: "reward", Value: rewardKeys(&e.Reward)},
		strict.Key{Name: "guardrails", Value: guardrailList(&e)},
		strict.Key{Name: "decide", Value: decideKeys(&e.Decide)},
		strict.Key{Name: "policy", Value: banditKeys(&e.Policy)},
		strict.Key{Name: "ramp", Value: rampList(&e.Ramp)},
		strict.Key{Name: "promote", Value: strict.OneOf(&e.Promote, PromoteManual, PromoteAuto)},
		strict.Key{Name: "tick", Value: duration(&e.Tick, time.Second, 24*time.Hour)},
	), func(d *strict.Document, path string) {
		checkExperiment(d, path, &e)
		if e.By() != ABTest {
			e.Assign = AssignSticky
		}
		if e.Reward != nil && e.Reward.Source.Fields != nil && e.Subject != "" &&
			d.Node(path+".reward.source.fields.subject") == nil {
			e.Reward.Source.Fields.Subject = e.Subject
		}
		*to = &e
	})
}

// shareSchema is the schema of a share.
func shareSchema() strict.Schema {
	return strict.Schema{"type": []any{"number", "string"}, "title": "share"}
}

// parseShare takes a number from 0 to 1.
func parseShare(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || v < 0 || v > 1 {
		return 0, strict.Want(fmt.Sprintf("%q is no share", text), "write a number from 0 to 1, such as 0.1")
	}
	return v, nil
}

// weightMap takes VERSION: SHARE.
func weightMap(to *[]ArmWeight) strict.Value {
	m := strict.Named("mapping of versions to shares",
		func(d *strict.Document, name, path string, key *yaml.Node) (strict.Value, bool) {
			version, err := ParseNumber(name)
			if err != nil || name != version.String() {
				d.Refuse(key, path, fmt.Sprintf("%q is no version", name), "write versions as status shows them: v1: 0.9")
				return strict.Value{}, false
			}
			var weight float64
			return strict.Then(strict.Written("share", &weight, parseShare), func(*strict.Document, string) {
				*to = append(*to, ArmWeight{Version: version, Weight: weight})
			}), true
		})
	m.Schema["additionalProperties"] = shareSchema()
	return strict.Then(m, func(d *strict.Document, path string) {
		if err := CheckWeights(*to); err != nil {
			d.RefuseAt(path, err.Error(), "write the share of every arm, the live version among them: {v1: 0.9, v2: 0.1}")
		}
	})
}

// ViewSplit describes how a serving view is shared between versions.
type ViewSplit struct {
	View ViewName
	Job  Name
	Run  int       // of the experiment
	Arms []Version // the control first: who names no subject reads it
	// Contract is the view's contract, as of a ViewChange.
	Contract json.RawMessage
}

// ArmsView is the name of the view that shows every arm of a split view, each row with its version.
func (v ViewName) ArmsView() ViewName { return ViewName{Schema: v.Schema, Name: v.Name + "__arms"} }

// ForFunction is the name of the function that returns the rows of a split view for one subject.
func (v ViewName) ForFunction() ViewName { return ViewName{Schema: v.Schema, Name: v.Name + "_for"} }
