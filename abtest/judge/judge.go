package judge

import (
	"time"

	"github.com/kappactl/kappactl/abtest/policy"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// Inputs are what one look has found. Arms are in the order of the run, the control first.
type Inputs struct {
	At      time.Time        `json:"at"`  // by the clock of the database
	Age     time.Duration    `json:"age"` // of the run
	Arms    []string         `json:"arms"`
	Weights []int            `json:"weights"` // that hold now, in parts per million
	Paused  bool             `json:"paused,omitempty"`
	Exposed []policy.Epoch   `json:"exposed"` // recorded subjects by epoch
	Crossed int64            `json:"crossed,omitempty"`
	Matured [][]policy.Tally `json:"matured"` // by epoch and arm: the subjects whose window is over
	// Source is why not all rewards are there; zero: they are.
	Source reason.Reason `json:"source"`
	// Watermark is the time up to which rewards have been read; nil: they are reported as they happen.
	Watermark *time.Time `json:"watermark,omitempty"`
	Guards    []Guard    `json:"guards,omitempty"`
	// Refused is why a promote that the run asked for was refused; zero: it was not.
	Refused reason.Reason `json:"refused"`
	Before  Progress      `json:"before"`
}

// Guard is the state of a guardrail.
type Guard struct {
	Name     string              `json:"name"`
	Action   job.GuardrailAction `json:"action"`
	Breached bool                `json:"breached,omitempty"`
	Blind    bool                `json:"blind,omitempty"` // without data or with errors for longer than is borne
	Reason   reason.Reason       `json:"reason"`
}

// Progress is what a look leaves to the next one.
type Progress struct {
	Seen  []policy.Tally `json:"seen,omitempty"`  // all matured subjects at the last look, by arm
	Faded []policy.Tally `json:"faded,omitempty"` // the same, of which each look remembers a part
	Sure  int            `json:"sure,omitempty"`  // looks in a row at which one arm was the best
	Best  string         `json:"best,omitempty"`  // that arm
	P     []float64      `json:"p,omitempty"`     // the least p so far of every arm but the control
	// Ratio is how many subjects there were when their split was last tested.
	Ratio    int64         `json:"ratio,omitempty"`
	Mismatch reason.Reason `json:"mismatch"`
	// Accepted are the causes that a person has overridden, Cause is that of the last pause.
	Accepted []reason.Code `json:"accepted,omitempty"`
	Cause    reason.Code   `json:"cause,omitempty"`
	// Mark is the last watermark, MovedAt when it had moved.
	Mark    time.Time `json:"mark,omitzero"`
	MovedAt time.Time `json:"moved_at,omitzero"`
	Asked   int64     `json:"asked,omitempty"` // the request by which the run has asked for a promote, or to be stopped
	// Last is the verdict of the last look with its reason: a look that comes to the same is no new decision.
	Last string `json:"last,omitempty"`
}

// Verdict is what happens next.
type Verdict string

// The verdicts, in the order in which the first that applies is taken: see Judge.
const (
	Rollback Verdict = "rollback" // the run ends, everybody reads the control
	Pause    Verdict = "pause"
	Freeze   Verdict = "freeze" // the weights stay until rewards can be trusted again
	Win      Verdict = "win"    // an arm is to be promoted
	Move     Verdict = "weights"
	Wait     Verdict = "wait" // nothing yet
)

// Outcome is a decision.
type Outcome struct {
	Verdict   Verdict       `json:"verdict"`
	Arm       string        `json:"arm,omitempty"` // of a win
	Weights   []int         `json:"weights"`       // from now on
	Reason    reason.Reason `json:"reason"`
	Estimates Estimates     `json:"estimates"`
	After     Progress      `json:"-"`
}

// Judge decides. The order: a breached guardrail; subjects that came otherwise than the weights say, or read several
// arms; rewards that are missing; too short a time or too few subjects; harm; a win; too long a time; weights that
// move.
func Judge(s job.Experiment, in Inputs) Outcome {
	j := &judgement{settings: s, in: in, out: Outcome{Weights: in.Weights, After: in.Before}}
	j.estimate(s.By() == job.ABBandit)
	j.follow()
	if !j.guarded() && !j.doubted() && !j.early() && !j.decided() && !j.over() {
		j.out.Verdict, j.out.Reason = Wait, reason.ABUndecided()
	}
	if j.out.Verdict == Wait && !in.Paused {
		j.move()
	}
	return j.out
}

// Estimate is what the inputs say about the arms, with probabilities of being the best also where no verdict follows
// from them.
func Estimate(s job.Experiment, in Inputs) Estimates {
	j := &judgement{settings: s, in: in, out: Outcome{After: in.Before}}
	j.estimate(true)
	return j.out.Estimates
}

type judgement struct {
	settings job.Experiment
	in       Inputs
	out      Outcome
	broken   bool // an estimate is not a number
}

func (j *judgement) is(v Verdict, why reason.Reason) bool {
	j.out.Verdict, j.out.Reason = v, why
	return true
}

// accepted reports whether a person has overridden the cause.
func (j *judgement) accepted(c reason.Code) bool {
	for _, a := range j.in.Before.Accepted {
		if a == c {
			return true
		}
	}
	return false
}

// guarded looks at the guardrails: also while the run is paused.
func (j *judgement) guarded() bool {
	for _, g := range j.in.Guards {
		if g.Breached && g.Action == job.GuardRollback {
			return j.is(Rollback, reason.ABBreach(g.Name, g.Reason))
		}
	}
	if j.in.Paused {
		return j.is(Wait, reason.ABWaitsForResume())
	}
	for _, g := range j.in.Guards {
		if g.Breached && g.Action == job.GuardPause && !j.accepted(reason.CodeABBreach) {
			return j.is(Pause, reason.ABBreach(g.Name, g.Reason))
		}
	}
	return false
}

// The limits of what subjects do.
const (
	mismatchP    = 0.001
	mostCrossed  = 0.01
	firstRatio   = 100 // subjects: their split is tested then, and whenever they have doubled
	mostStuck    = 3   // looks
	sureLooks    = 3
	surelyBest   = 0.99
	lossOfMean   = 0.005 // of the control's mean: the default of loss_max
	enoughStrata = 2     // subjects of every arm, for an estimate of variance
)

// doubted looks for what makes the comparison worthless.
func (j *judgement) doubted() bool {
	var all int64
	for _, e := range j.in.Exposed {
		for _, n := range e.Subjects {
			all += n
		}
	}
	ratio := policy.SampleRatio(j.in.Exposed)
	due := all >= firstRatio && (j.out.After.Ratio == 0 || all >= 2*j.out.After.Ratio)
	if due {
		j.out.After.Ratio = all
	}
	switch {
	case j.settings.Reward == nil: // nothing is compared
	case ratio.Impossible || due && ratio.P < mismatchP:
		j.out.After.Mismatch = reason.ABMismatch(ratio.P)
	}
	if why := j.out.After.Mismatch; !why.IsZero() && !j.accepted(why.Code) {
		return j.is(Pause, why)
	}
	if share := float64(j.in.Crossed) / max(1, float64(all)); all >= firstRatio && share > mostCrossed &&
		!j.accepted(reason.CodeABCrossed) {
		return j.is(Pause, reason.ABCrossed(share))
	}
	for _, g := range j.in.Guards {
		if g.Blind && !j.accepted(reason.CodeABBlind) {
			return j.is(Pause, reason.ABBlind(g.Name, g.Reason))
		}
	}
	switch {
	case !j.in.Source.IsZero():
		return j.is(Freeze, reason.ABSource(j.in.Source))
	case j.stuck() > 0:
		return j.is(Freeze, reason.ABStuck(j.stuck()))
	case j.broken:
		return j.is(Freeze, reason.ABNoNumber())
	}
	return false
}

// follow notes whether the watermark has moved.
func (j *judgement) follow() {
	p := &j.out.After
	if w := j.in.Watermark; w == nil || w.After(p.Mark) || p.MovedAt.IsZero() {
		p.MovedAt = j.in.At
		if w != nil {
			p.Mark = *w
		}
	}
}

// stuck is for how long the watermark has not moved, when that is too long.
func (j *judgement) stuck() time.Duration {
	if j.settings.Reward == nil {
		return 0
	}
	period := max(j.settings.Look(), j.settings.Reward.Source.Every)
	if still := j.in.At.Sub(j.out.After.MovedAt); still > mostStuck*period {
		return still
	}
	return 0
}

// early reports whether it is too early for a verdict.
func (j *judgement) early() bool {
	if j.settings.Reward == nil {
		return j.settings.By() != job.ABRamp && !j.late() && j.is(Wait, reason.ABGuardsOnly())
	}
	d := j.settings.Deciding()
	if j.in.Age < d.MinRuntime {
		return j.is(Wait, reason.ABRuntime(d.MinRuntime-j.in.Age))
	}
	for i, t := range j.out.After.Seen {
		if t.N < float64(d.MinSubjects) {
			return !j.late() && j.is(Wait, reason.ABSubjects(j.in.Arms[i], t.N, d.MinSubjects))
		}
	}
	return false
}

func (j *judgement) late() bool { return j.in.Age >= j.settings.Deciding().MaxRuntime }

// over reports whether the run has taken too long.
func (j *judgement) over() bool {
	d := j.settings.Deciding()
	why := reason.ABTimeout(d.MaxRuntime)
	switch {
	case !j.late() || d.OnTimeout == job.TimeoutContinue || j.accepted(why.Code):
		return false
	case d.OnTimeout == job.TimeoutRollback:
		return j.is(Rollback, why)
	}
	return j.is(Pause, why)
}
