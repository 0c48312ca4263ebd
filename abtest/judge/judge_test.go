package judge

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kappactl/kappactl/abtest/policy"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

func rates(n, s float64) policy.Tally { return policy.Tally{N: n, Sum: s, Squares: s} }

func tested() job.Experiment {
	d := job.DefaultDecide()
	d.MDE = .02
	return job.Experiment{Reward: &job.Reward{Kind: job.Bernoulli, Direction: job.Up}, Decide: &d}
}

func bandit() job.Experiment {
	e := tested()
	e.Mode = job.ABBandit
	return e
}

// found are inputs two days into a run.
func found(control, arm policy.Tally) Inputs {
	return Inputs{
		Age: 48 * time.Hour, Arms: []string{"v1", "v2"}, Weights: []int{500000, 500000},
		Exposed: []policy.Epoch{{Weights: []float64{.5, .5}, Subjects: []int64{int64(control.N), int64(arm.N)}}},
		Matured: [][]policy.Tally{{control, arm}},
	}
}

func breached(a job.GuardrailAction) Guard {
	return Guard{Name: "errors", Action: a, Breached: true, Reason: reason.ABGuardValue("v2", 2, 1)}
}

// The first of the causes that applies decides.
func TestTheOrderOfDecisions(t *testing.T) {
	better, worse := found(rates(10000, 1200), rates(10000, 1500)), found(rates(10000, 1500), rates(10000, 1200))
	with := func(in Inputs, change func(*Inputs)) Inputs {
		change(&in)
		return in
	}
	now := time.Now()
	lost := with(better, func(i *Inputs) {
		i.Exposed = []policy.Epoch{{Weights: []float64{.5, .5}, Subjects: []int64{10000, 9000}}}
	})
	for name, c := range map[string]struct {
		in   Inputs
		want Verdict
		why  reason.Code
	}{
		"win":          {better, Win, reason.CodeABWon},
		"harm":         {worse, Rollback, reason.CodeABHarm},
		"undecided":    {found(rates(10000, 1500), rates(10000, 1500)), Wait, reason.CodeABUndecided},
		"too young":    {with(better, func(i *Inputs) { i.Age = time.Hour }), Wait, reason.CodeABRuntime},
		"too few":      {found(rates(10000, 1200), rates(399, 390)), Pause, reason.CodeABMismatch},
		"few":          {with(found(rates(399, 10), rates(400, 390)), func(*Inputs) {}), Wait, reason.CodeABSubjects},
		"mismatch":     {lost, Pause, reason.CodeABMismatch},
		"zero weight":  {with(better, func(i *Inputs) { i.Exposed = []policy.Epoch{{Weights: []float64{1, 0}, Subjects: []int64{50, 1}}} }), Pause, reason.CodeABMismatch},
		"crossed":      {with(better, func(i *Inputs) { i.Crossed = 300 }), Pause, reason.CodeABCrossed},
		"breach":       {with(lost, func(i *Inputs) { i.Guards = []Guard{breached(job.GuardRollback)} }), Rollback, reason.CodeABBreach},
		"breach pause": {with(better, func(i *Inputs) { i.Guards = []Guard{breached(job.GuardPause)} }), Pause, reason.CodeABBreach},
		"breach warn":  {with(better, func(i *Inputs) { i.Guards = []Guard{breached(job.GuardWarn)} }), Win, reason.CodeABWon},
		"blind":        {with(better, func(i *Inputs) { i.Guards = []Guard{{Name: "errors", Blind: true}} }), Pause, reason.CodeABBlind},
		"no source":    {with(better, func(i *Inputs) { i.Source = reason.ABGuardNoData() }), Freeze, reason.CodeABSource},
		"stuck": {with(better, func(i *Inputs) {
			i.At, i.Watermark, i.Before.Mark, i.Before.MovedAt = now.Add(4*time.Minute), &now, now, now
		}), Freeze, reason.CodeABStuck},
		"not a number":   {found(rates(10000, math.NaN()), rates(10000, 1500)), Freeze, reason.CodeABNoNumber},
		"refused":        {with(better, func(i *Inputs) { i.Refused = reason.ABGuardNoData() }), Freeze, reason.CodeABPromoteRefused},
		"timeout":        {with(found(rates(1000, 150), rates(1000, 150)), func(i *Inputs) { i.Age = 15 * 24 * time.Hour }), Pause, reason.CodeABTimeout},
		"paused":         {with(worse, func(i *Inputs) { i.Paused = true }), Wait, reason.CodeABWaitsForResume},
		"paused, breach": {with(worse, func(i *Inputs) { i.Paused, i.Guards = true, []Guard{breached(job.GuardRollback)} }), Rollback, reason.CodeABBreach},
		"accepted":       {with(lost, func(i *Inputs) { i.Before.Accepted = []reason.Code{reason.CodeABMismatch} }), Win, reason.CodeABWon},
	} {
		t.Run(name, func(t *testing.T) {
			if out := Judge(tested(), c.in); out.Verdict != c.want || out.Reason.Code != c.why || out.Reason.Text() == "" {
				t.Errorf("%s: %s (%s)", out.Verdict, out.Reason.Text(), out.Reason.Code)
			}
		})
	}
}

// The split is tested at 100 subjects and whenever they have doubled: a test at every look would raise false alarms.
func TestTheSplitIsNotTestedAtEveryLook(t *testing.T) {
	in := found(rates(60, 6), rates(60, 6))
	out := Judge(tested(), in)
	if out.After.Ratio != 120 {
		t.Fatalf("%+v", out.After)
	}
	in.Before, in.Exposed[0].Subjects = out.After, []int64{150, 60}
	if out = Judge(tested(), in); out.Verdict == Pause {
		t.Error("it is tested again before the subjects have doubled")
	}
	in.Before, in.Exposed[0].Subjects = out.After, []int64{180, 61}
	if out = Judge(tested(), in); out.Verdict != Pause {
		t.Errorf("%s", out.Verdict)
	}
}

func TestABanditMovesItsWeights(t *testing.T) {
	in := found(rates(100, 10), rates(100, 20))
	out := Judge(bandit(), in)
	if out.Verdict != Move || out.Weights[0] != 400000 || out.Weights[1] != 600000 { // vector 11: one step of 0.1
		t.Errorf("%s %v %s", out.Verdict, out.Weights, out.Reason.Text())
	}
	for name, c := range map[string]struct {
		in  Inputs
		why reason.Code
	}{
		"few":      {found(rates(99, 10), rates(100, 20)), reason.CodeABSubjects},
		"constant": {found(rates(200, 0), rates(200, 0)), reason.CodeABConstant},
		"young":    {Inputs{Age: time.Minute, Arms: in.Arms, Weights: in.Weights, Matured: in.Matured}, reason.CodeABExplores},
	} {
		if out := Judge(bandit(), c.in); out.Verdict != Wait || out.Reason.Code != c.why || out.Weights[0] != 500000 {
			t.Errorf("%s: %s %v %s", name, out.Verdict, out.Weights, out.Reason.Text())
		}
	}
	in.Matured = append(in.Matured, []policy.Tally{rates(24, 2), rates(30, 4)})
	if out := Judge(bandit(), in); out.Reason.Code != reason.CodeABSubjects {
		t.Errorf("an epoch of 24 subjects: %s", out.Reason.Text())
	}
}

func TestABanditIsSureThreeTimes(t *testing.T) {
	in := found(rates(1000, 100), rates(1000, 200))
	for look, want := range []Verdict{Move, Move, Win} {
		out := Judge(bandit(), in)
		if out.Verdict != want {
			t.Fatalf("look %d: %s, %s", look, out.Verdict, out.Reason.Text())
		}
		in.Before, in.Weights = out.After, out.Weights
		if again := Judge(bandit(), in); look < 2 && again.Verdict == Win {
			t.Fatal("a look without new subjects counts")
		}
		in.Matured = [][]policy.Tally{{in.Matured[0][0].Plus(rates(10, 1)), in.Matured[0][1].Plus(rates(10, 2))}}
		in.Exposed[0].Subjects = []int64{1010 + int64(look)*10, 1010 + int64(look)*10}
	}
	in = found(rates(1000, 200), rates(1000, 100))
	in.Before.Sure, in.Before.Best = 2, "v1"
	if out := Judge(bandit(), in); out.Verdict != Rollback {
		t.Errorf("%s", out.Verdict)
	}
}

func TestARampFollowsItsSteps(t *testing.T) {
	e := job.Experiment{Mode: job.ABRamp, Ramp: []job.RampStep{{Weight: .05, Hold: time.Hour}, {Weight: .5, Hold: time.Hour}}}
	in := found(rates(0, 0), rates(0, 0))
	for age, want := range map[time.Duration]int{0: 50000, 61 * time.Minute: 500000} {
		in.Age, in.Weights = age, []int{990000, 10000}
		if out := Judge(e, in); out.Verdict != Move || out.Weights[1] != want {
			t.Errorf("after %s: %s %v", age, out.Verdict, out.Weights)
		}
	}
	in.Age = 2 * time.Hour
	if out := Judge(e, in); out.Verdict != Win || out.Arm != "v2" {
		t.Errorf("%s", out.Verdict)
	}
}

// simulated is one run of looks, of which each finds so many subjects of each arm.
func simulated(e job.Experiment, seed uint64, looks, each int, control, arm float64) (v Verdict, after int) {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // synthetic rewards
	in := found(policy.Tally{}, policy.Tally{})
	for look := range looks {
		for i, p := range []float64{control, arm} {
			s := 0.0
			for range each {
				if random.Float64() < p {
					s++
				}
			}
			in.Matured[0][i] = in.Matured[0][i].Plus(rates(float64(each), s))
			in.Exposed[0].Subjects[i] += int64(each)
		}
		out := Judge(e, in)
		if out.Verdict == Win || out.Verdict == Rollback {
			return out.Verdict, look
		}
		in.Before = out.After
	}
	return Wait, looks
}

// Of 200 tests between equal arms, looked at 40 times, at most alpha come to a verdict. The rate of the bandit is printed: it bounds
// the loss, not false verdicts.
func TestVerdictsBetweenEqualArms(t *testing.T) {
	wins, harms, sure := 0, 0, 0
	fixed := bandit() // its weights stay here, so that its verdicts are compared at the same counts
	loss := .0005
	fixed.Decide.LossMax = &loss
	for seed := range uint64(200) {
		v, _ := simulated(tested(), seed, 40, 250, .1, .1)
		if v == Win {
			wins++
		}
		if v == Rollback {
			harms++
		}
	}
	for seed := range uint64(30) {
		if v, _ := simulated(fixed, seed, 20, 250, .1, .1); v == Win {
			sure++
		}
	}
	t.Logf("A/A: ab promotes %d of 200 and rolls back %d; the bandit promotes %d of 30", wins, harms, sure)
	if wins > 10 || wins+harms > 20 {
		t.Errorf("%d wins and %d harms in 200 tests between equal arms", wins, harms)
	}
	if v, _ := simulated(tested(), 1, 40, 250, .1, .14); v != Win {
		t.Errorf("a better arm: %s", v)
	}
}

// What is stored in a decision is enough to decide again.
func TestInputsSurviveJSON(t *testing.T) {
	in := found(rates(1000, 100), rates(1000, 200))
	in.Guards, in.At = []Guard{breached(job.GuardWarn)}, time.Now().UTC()
	in.Before = Judge(bandit(), in).After
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var again Inputs
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	a, b := Judge(bandit(), in), Judge(bandit(), again)
	if one, two := mustJSON(t, a), mustJSON(t, b); one != two {
		t.Errorf("%s\n%s", one, two)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
