package policy

import (
	"math"
	"strconv"
	"testing"
)

// near fails unless the numbers differ by at most eps, relative to numbers above 1.
func near(t *testing.T, what string, got, want, eps float64) {
	t.Helper()
	if !(math.Abs(got-want) <= eps*max(1, math.Abs(want))) {
		t.Errorf("%s = %.12g, not %.12g", what, got, want)
	}
}

func best(t *testing.T, arms ...Posterior) []float64 {
	t.Helper()
	p, err := BestProbabilities(arms)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestThompsonBetaComparesExactly(t *testing.T) {
	for _, c := range []struct {
		name         string
		a, b         Beta
		p            float64
		lossB, lossA float64 // negative: not compared
	}{
		{"ten against twenty per cent", Beta{11, 91}, Beta{21, 81}, 0.975173033152875, 0.000479359303998, 0.098518574990272},
		{"a thousand subjects", Beta{121, 881}, Beta{151, 851}, 0.975067836812144, 0.000144177855112, 0.030084297615591},
		{"closer", Beta{101, 901}, Beta{131, 871}, 0.982165066116351, -1, -1},
		{"nothing known", Beta{1, 1}, Beta{1, 1}, 0.5, 1.0 / 6, 1.0 / 6},
		{"wide and narrower", Beta{1, 1}, Beta{2, 2}, 0.5, 0.15, 0.15},
		{"narrow", Beta{500001, 9500001}, Beta{501001, 9499001}, 0.847434518, -1, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			arms := []Posterior{c.a, c.b}
			eps := 1e-9
			if c.a.A+c.a.B > 1e6 {
				eps = 1e-7 // the logarithms of gamma functions of ten million lose digits; weights need six
			}
			near(t, "P(B best)", best(t, arms...)[1], c.p, eps)
			if loss := ExpectedLoss(arms); c.lossB >= 0 {
				near(t, "loss of B", loss[1], c.lossB, 1e-9)
				near(t, "loss of A", loss[0], c.lossA, 1e-9)
			}
		})
	}
}

func TestThreeArmsShareTheProbability(t *testing.T) {
	p := best(t, Beta{11, 91}, Beta{16, 86}, Beta{21, 81})
	for i, want := range []float64{0.0146818923, 0.1748584341, 0.8104596736} {
		near(t, "P(best)", p[i], want, 1e-9)
	}
	near(t, "sum", p[0]+p[1]+p[2], 1, 1e-12)
}

func TestGaussiansCompareExactly(t *testing.T) {
	a, b := Normal{M: 10, V: 4.0 / 100}, Normal{M: 10.5, V: 2.2 * 2.2 / 120}
	near(t, "P(B best)", best(t, a, b)[1], 0.961142055255, 1e-9)
	loss := ExpectedLoss([]Posterior{a, b})
	near(t, "loss of B", loss[1], 0.004426528402, 1e-9)
	near(t, "loss of A", loss[0], 0.504426528402, 1e-9)

	tally := func(values ...float64) (out Tally) {
		for _, v := range values {
			out = out.Plus(Tally{N: 1, Sum: v, Squares: v * v})
		}
		return out
	}
	arms := Gaussians([]Tally{tally(4.1, 5.3, 3.8, 6.0, 5.1), tally(5.0, 6.2, 4.9, 6.8, 5.6)})
	for i, want := range []struct{ m, k, a, b, scale float64 }{
		{4.05, 6, 3.5, 12.4675, 0.770513125},
		{4.75, 6, 3.5, 15.8375, 0.868427698},
	} {
		got := arms[i].(NIG)
		near(t, "m", got.M, want.m, 1e-9)
		near(t, "k", got.K, want.k, 1e-9)
		near(t, "a", got.A, want.a, 1e-9)
		near(t, "b", got.B, want.b, 1e-9)
		near(t, "scale", got.Scale(), want.scale, 1e-9)
	}
	near(t, "P(B best)", best(t, arms...)[1], 0.708178965, 1e-9)
	near(t, "P(A best) when lower is better", best(t, Turned(arms, true)...)[0], 0.708178965, 1e-9)
}

func TestUCB1SpreadsABatch(t *testing.T) {
	arms := []Tally{{N: 10, Sum: 4}, {N: 20, Sum: 9}, {N: 70, Sum: 30}}
	for i, want := range []float64{1.359705182, 1.128614042, 0.791305892} {
		near(t, "index", index(arms[i].Mean(), arms[i].N, 100), want, 1e-9)
	}
	w, err := Rules{Kind: UCB1, Batch: 100}.Targets(arms)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{.47, .53, 0} {
		near(t, "share", w[i], want, 1e-9)
	}
}

func TestEpsilonGreedyFavoursTheBestMean(t *testing.T) {
	arms := []Tally{{N: 10, Sum: 4}, {N: 20, Sum: 9}, {N: 70, Sum: 30}}
	for _, c := range []struct {
		down bool
		want []float64
	}{
		{false, []float64{1.0 / 30, 28.0 / 30, 1.0 / 30}},
		{true, []float64{28.0 / 30, 1.0 / 30, 1.0 / 30}},
	} {
		w, err := Rules{Kind: EpsilonGreedy, Epsilon: .1, Down: c.down}.Targets(arms)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.want {
			near(t, "weight", w[i], c.want[i], 1e-9)
		}
	}
	if w := epsilonGreedy([]float64{1, 1}, .1); w[0] != .5 || w[1] != .5 {
		t.Errorf("a tie is split into %v", w)
	}
}

func TestFloorStepAndRounding(t *testing.T) {
	near(t, "floor", WithFloor([]float64{.98, .02}, .05)[0], .932, 1e-12)
	for _, c := range []struct {
		weights []float64
		ppm     []int
	}{
		{WithFloor([]float64{.7, .299, .001}, .05), []int{645000, 304150, 50850}},
		{Equal(3), []int{333334, 333333, 333333}},
		{WithFloor(best(t, Beta{11, 91}, Beta{21, 81}), .05), []int{72344, 927656}},
		{Step(Equal(2), WithFloor(best(t, Beta{11, 91}, Beta{21, 81}), .05), .1), []int{400000, 600000}},
		{[]float64{.9, .1}, []int{900000, 100000}},
		{[]float64{.29, .71}, []int{290000, 710000}}, // .29 is a hair below 29/100
	} {
		got := PPM(c.weights)
		for i := range c.ppm {
			if got[i] != c.ppm[i] {
				t.Errorf("PPM(%v) = %v, not %v", c.weights, got, c.ppm)
				break
			}
		}
	}
}

func TestWeightsThatAreNoSplitAreRefused(t *testing.T) {
	for _, bad := range [][]float64{{.5, .4}, {1.5, -.5}, {math.NaN(), 1}, {math.Inf(1), 0}, {.5, .5 + 1e-8}} {
		if CheckWeights(bad) == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	if err := CheckWeights([]float64{.1, .2, .7}); err != nil {
		t.Error(err)
	}
}

func TestBucketsAreThoseOfTheSpecification(t *testing.T) {
	for subject, want := range map[string]int{"u1": 951497, "u2": 904035, "u42": 261195, "alice": 556575, "日本": 862374} {
		if got := Bucket("orders:3", subject); got != want {
			t.Errorf("Bucket(orders:3, %s) = %d, not %d", subject, got, want)
		}
	}
	before, after, moved, halves, both := 0, 0, 0, 0, 0
	a, b := Cuts([]int{900_000, 100_000}), Cuts([]int{800_000, 200_000})
	for i := range 100_000 {
		subject := "u" + strconv.Itoa(i+1)
		bucket, other := Bucket("orders:3", subject), Bucket("orders:4", subject)
		was, is := ArmOf(a, bucket), ArmOf(b, bucket)
		before += was
		after += is
		if was != is {
			moved++
		}
		if other >= Million/2 {
			halves++
			if bucket >= Million/2 {
				both++
			}
		}
	}
	if before != 10140 || moved != 9875 || after-before != moved {
		t.Errorf("%d subjects at 10 %%, %d moved to 20 %%, %d then", before, moved, after)
	}
	if halves != 50158 || both != 24892 {
		t.Errorf("another run halves into %d, of which %d were in the upper half: %d", halves, halves, both)
	}
}
