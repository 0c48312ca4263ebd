package policy

import "testing"

func proportion(n, successes float64) Tally { return Tally{N: n, Sum: successes, Squares: successes} }

func TestSampleRatioMismatch(t *testing.T) {
	half, third, tenth := Equal(2), Equal(3), []float64{.9, .1}
	for _, c := range []struct {
		name    string
		epochs  []Epoch
		chi, p  float64
		freedom int
	}{
		{"small", []Epoch{{half, []int64{5000, 5200}}}, 3.921568627, 0.047670381, 1},
		{"larger", []Epoch{{half, []int64{4850, 5150}}}, 9, 0.002699796, 1},
		{"ninety to ten", []Epoch{{tenth, []int64{9100, 900}}}, 11.111111111, 0.000858121, 1},
		{"a large site", []Epoch{{half, []int64{821588, 815482}}}, 22.774368842, 1.82179e-6, 1},
		{"three arms", []Epoch{{third, []int64{3400, 3300, 3500}}}, 5.882352941, 0.052803570, 2},
		{"two epochs", []Epoch{{half, []int64{500, 500}}, {tenth, []int64{3610, 390}}}, 0.277777778, 0.870324725, 2},
		{"too few", []Epoch{{half, []int64{3, 4}}}, 0, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := SampleRatio(c.epochs)
			near(t, "chi squared", m.ChiSquared, c.chi, 1e-5)
			near(t, "p", m.P, c.p, 1e-9)
			if m.Freedom != c.freedom {
				t.Errorf("%d degrees of freedom", m.Freedom)
			}
		})
	}
	if m := SampleRatio([]Epoch{{[]float64{1, 0}, []int64{1000, 1}}}); !m.Impossible || m.P != 0 {
		t.Errorf("a subject in an arm of weight zero is not an alarm: %+v", m)
	}
}

func TestAlwaysValidStatistics(t *testing.T) {
	const tau = .02
	e, ok := Stratified([]Tally{proportion(1000, 120)}, []Tally{proportion(1000, 150)})
	if !ok {
		t.Fatal("no estimate")
	}
	near(t, "V", e.Variance, 2.331e-4, 1e-9)
	near(t, "L", e.Likelihood(tau), 2.054707135, 1e-9)
	near(t, "p", 1/e.Likelihood(tau), 0.486687364, 1e-9)
	large, _ := Stratified([]Tally{proportion(10000, 1200)}, []Tally{proportion(10000, 1500)})
	near(t, "L of ten times as many", large.Likelihood(tau), 19625836.14, 1e-9)

	p := 1.0
	for i, want := range []float64{0.486687364, 0.105883744, 0.003316264, 0.001959534} {
		look := []struct{ n, a, b float64 }{{1000, 120, 150}, {2000, 240, 300}, {4000, 480, 600}, {6000, 720, 870}}[i]
		e, _ := Stratified([]Tally{proportion(look.n, look.a)}, []Tally{proportion(look.n, look.b)})
		p = min(p, 1/e.Likelihood(tau))
		near(t, "running p", p, want, 1e-9)
	}

	// At the bound of the interval the likelihood ratio is exactly 1 / alpha.
	for _, alpha := range []float64{.05, .01} {
		lo, hi := e.Interval(tau, alpha)
		at := Effect{Difference: (hi - lo) / 2, Variance: e.Variance}
		near(t, "L at the bound", at.Likelihood(tau), 1/alpha, 1e-9)
	}
}

func TestEpochsAreEstimatedApart(t *testing.T) {
	control := []Tally{proportion(500, 50), proportion(100, 5)}
	arm := []Tally{proportion(500, 60), proportion(900, 54)}
	e, ok := Stratified(control, arm)
	if !ok {
		t.Fatal("no estimate")
	}
	near(t, "difference", e.Difference, .015, 1e-9)
	near(t, "standard error squared", e.Variance, .015238657*.015238657, 1e-9)
	pooled, _ := Stratified([]Tally{control[0].Plus(control[1])}, []Tally{arm[0].Plus(arm[1])})
	near(t, "pooled, of the wrong sign", pooled.Difference, .081428571429-.091666666667, 1e-9)

	e, _ = Stratified(append(control, proportion(1, 1)), append(arm, proportion(50, 1)))
	if e.LeftOut != 1 {
		t.Errorf("%d epochs left out, not the one with a single subject", e.LeftOut)
	}
	if _, ok := Stratified([]Tally{{}}, []Tally{{}}); ok {
		t.Error("an estimate of nothing")
	}
}

func TestDiscountForgets(t *testing.T) {
	var seen Tally
	for _, batch := range []Tally{proportion(50, 5), proportion(50, 8), proportion(50, 2)} {
		seen = seen.Faded(.9).Plus(batch)
	}
	b := Betas([]Tally{seen})[0].(Beta)
	near(t, "a", b.A, 14.25, 1e-9)
	near(t, "b", b.B, 123.25, 1e-9)
	near(t, "mean", b.Mean(), 0.103636364, 1e-9)
}

func TestDecisions(t *testing.T) {
	s := Sequential{Alpha: .05, MDE: .02}
	effect := func(a, b float64) Effect {
		e, _ := Stratified([]Tally{proportion(10000, a)}, []Tally{proportion(10000, b)})
		return e
	}
	for _, c := range []struct {
		name    string
		effects []Effect
		down    bool
		want    Verdict
		best    int
	}{
		{"better", []Effect{effect(1200, 1500)}, false, Win, 1},
		{"better when lower is better", []Effect{effect(1500, 1200)}, true, Win, 1},
		{"worse", []Effect{effect(1500, 1200)}, false, Harm, 0},
		{"the same", []Effect{effect(1500, 1500)}, false, Undecided, 0},
		{"the better of two", []Effect{effect(1200, 1500), effect(1200, 1700)}, false, Win, 2},
		{"one of two is worse", []Effect{effect(1500, 1500), effect(1500, 1200)}, false, Undecided, 0},
		{"constant rewards", []Effect{{Difference: 1}}, false, Undecided, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.Down = c.down
			if v, best := s.Decide(c.effects); v != c.want || best != c.best {
				t.Errorf("%s of arm %d, not %s of arm %d", v, best, c.want, c.best)
			}
		})
	}
	bandit := Confident{P: .99, LossMax: .0005}
	for _, c := range []struct {
		p, loss []float64
		want    Verdict
	}{
		{[]float64{.005, .995}, []float64{.1, .0001}, Win},
		{[]float64{.005, .995}, []float64{.1, .001}, Undecided},
		{[]float64{.995, .005}, []float64{.0001, .1}, Harm},
		{[]float64{.03, .97}, []float64{.1, .0001}, Undecided},
	} {
		if v, _ := bandit.Decide(c.p, c.loss); v != c.want {
			t.Errorf("%v with loss %v is %s, not %s", c.p, c.loss, v, c.want)
		}
	}
}
