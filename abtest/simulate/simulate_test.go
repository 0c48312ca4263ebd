package simulate

import (
	"math"
	"reflect"
	"testing"

	"github.com/kappactl/kappactl/abtest/policy"
)

func bernoulli(batches int, means ...float64) Plan {
	p := Plan{
		Weights: policy.Equal(len(means)), Batches: batches, Batch: 500, Gamma: 1, MaxStep: 1, InARow: 3,
		Sequential: policy.Sequential{Alpha: .05, MDE: .02}, Confident: policy.Confident{P: .99, LossMax: .0005}, Seed: 7,
	}
	for i, m := range means {
		p.Arms = append(p.Arms, Arm{Name: "v" + string(rune('1'+i)), Mean: m})
	}
	return p
}

func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	p := bernoulli(5, .1, .12)
	p.Policy = &policy.Rules{Kind: policy.ThompsonBeta}
	a, err := Simulate(p, 3)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := Simulate(p, 3); !reflect.DeepEqual(a, b) {
		t.Error("two runs of one seed differ")
	}
	if b, _ := Simulate(p, 4); reflect.DeepEqual(a, b) {
		t.Error("runs of two numbers are the same")
	}
}

// A bandit sends the better arm most of the traffic, and less of it the higher the floor is.
func TestThompsonSendsTrafficToTheBetterArm(t *testing.T) {
	const runs = 24
	for _, c := range []struct{ floor, share float64 }{{0, .891}, {.05, .856}, {.10, .818}} {
		p := bernoulli(40, .1, .115)
		p.Policy, p.MinWeight = &policy.Rules{Kind: policy.ThompsonBeta}, c.floor
		s, err := Repeat(p, runs)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(s.Mean[1]-c.share) > .05 {
			t.Errorf("floor %v: the better arm got %.3f of the traffic, not about %.3f", c.floor, s.Mean[1], c.share)
		}
	}
}

// Looking after every batch does not make an A/B test wrong more often than alpha.
func TestFewTestsOfEqualArmsAreWon(t *testing.T) {
	p := bernoulli(20, .1, .1)
	p.Batch = 100
	s, err := Repeat(p, 200)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := s.Runs - s.Undecided; wrong > 10 {
		t.Errorf("%d of %d tests between equal arms came to a verdict", wrong, s.Runs)
	}
}

func TestTestsFindTheBetterArm(t *testing.T) {
	for _, c := range []struct {
		name string
		plan Plan
		arm  string
		want policy.Verdict
	}{
		{"better", bernoulli(20, .1, .15), "v2", policy.Win},
		{"worse", bernoulli(20, .15, .1), "v1", policy.Harm},
		{"of three", bernoulli(40, .1, .1, .2), "v3", policy.Win},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Simulate(c.plan, 0)
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict != c.want || r.Arm != c.arm {
				t.Errorf("%s of %q after batch %d", r.Verdict, r.Arm, r.Batch)
			}
			if r.Ratio.P < .001 {
				t.Errorf("subjects do not come as the weights say: %+v", r.Ratio)
			}
		})
	}
}

func TestEveryPolicyPrefersTheBetterArm(t *testing.T) {
	for _, kind := range policy.Kinds() {
		for _, down := range []bool{false, true} {
			p := bernoulli(20, .1, .3)
			if kind == policy.ThompsonGaussian {
				p.SD = .5
			}
			p.Down, p.ExploreMin, p.MaxStep, p.MinWeight = down, 100, .1, .05
			p.Policy = &policy.Rules{Kind: kind, Epsilon: .1, Batch: p.Batch, Down: down, Lo: 0, Hi: 1}
			r, err := Simulate(p, 0)
			if err != nil {
				t.Fatal(err)
			}
			last := r.Steps[len(r.Steps)-1].Weights
			if (last[1] > last[0]) == down {
				t.Errorf("%s, down %t: the weights end at %v", kind, down, last)
			}
		}
	}
}
