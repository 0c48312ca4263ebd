package query

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// everyWay runs a compiled query over records split at random, and gives its rows from the version table, from staging and from
// one pass.
func (l *mergeRig) everyWay(c *Compiled, r *rand.Rand, records []record) map[string][][]string {
	l.t.Helper()
	table, staged := l.merged(c, r, records)
	return map[string][][]string{"table": table, "staging": staged, "one pass": l.once(c, c.Oracle, records)}
}

// doublesOf are records of doubles in d.
func doublesOf(values ...float64) []record {
	out := make([]record, len(values))
	for i, v := range values {
		out[i] = record{"d": v, "f": float32(i % 3), "_partition": int32(0), "_offset": int64(i)}
	}
	return out
}

// TestTotalsOfDoublesAreTheSameOnEverySplitAtTheEnds: what overflows in between or at the end, what is not finite, and what is
// too small to be divided.
func TestTotalsOfDoublesAreTheSameOnEverySplitAtTheEnds(t *testing.T) {
	l := newMergeRig(t)
	c := mustCompile(t, "SELECT sum(d) AS s, avg(d) AS a FROM source")
	inf, most := math.Inf(1), math.MaxFloat64
	for _, of := range []struct {
		values    []float64
		sum, mean string
	}{
		{[]float64{1.5e308, 1.5e308}, "Infinity", "1.5e+308"},
		{[]float64{-1.5e308, -1.5e308}, "-Infinity", "-1.5e+308"},
		{[]float64{1.5e308, 1.5e308, -1.5e308}, "1.5e+308", "5e+307"},
		{[]float64{most, most, most}, "Infinity", "1.7976931348623157e+308"},
		{[]float64{most}, "1.7976931348623157e+308", "1.7976931348623157e+308"},
		{[]float64{0, 8e307}, "8e+307", "4e+307"},
		{[]float64{inf, 1}, "Infinity", "Infinity"},
		{[]float64{inf, -inf, 1}, "NaN", "NaN"},
		{[]float64{inf, most, most}, "Infinity", "Infinity"},
		{[]float64{math.NaN(), 1}, "NaN", "NaN"},
		{[]float64{5e-324, 0}, "0", "0"},
		{[]float64{math.Copysign(0, -1)}, "0", "0"},
		{[]float64{1e-280, 1e-280}, "2e-280", "1e-280"},
	} {
		for seed := range uint64(2) {
			for how, rows := range l.everyWay(c, rand.New(rand.NewPCG(seed, 43)), doublesOf(of.values...)) {
				if diff := gocmp.Diff([][]string{{of.sum, of.mean}}, rows); diff != "" {
					t.Errorf("%v, seed %d, %s (-want +got):\n%s", of.values, seed, how, diff)
				}
			}
		}
	}
}

// TestSpreadsOfDoublesAreTheSameOnEverySplitAtTheEnds: no split raises an error, and none gives another value.
func TestSpreadsOfDoublesAreTheSameOnEverySplitAtTheEnds(t *testing.T) {
	l := newMergeRig(t)
	c := mustCompile(t, `SELECT var_pop(d) AS v, stddev(d) AS s, covar_pop(d, f) AS c, corr(d, f) AS r, regr_slope(d, f) AS sl,
		regr_r2(d, f) AS r2, regr_r2(f, d) AS r3 FROM source`)
	pools := [][]float64{
		{math.Inf(1)},
		{math.Inf(1), 1, 2},
		{math.NaN(), 1},
		{1e200, -1e200},
		{1e308, -1e308, 0},
		{1e150, 1},
		{5e-324, 0, 1e-310},
		{1e-170, -1e-170, 3e-170},
		{1e139, -1e139, 5},
		{0, math.Copysign(0, -1)},
		{1e-120, 2e-120, 5e-120},
	}
	for i, pool := range pools {
		for seed := range uint64(3) {
			r := rand.New(rand.NewPCG(seed, 47))
			values := append([]float64{}, pool...)
			for range r.IntN(6) {
				values = append(values, pick(r, pool...))
			}
			got := l.everyWay(c, r, doublesOf(values...))
			for _, how := range []string{"table", "staging"} {
				if !near0(got["one pass"], got[how]) {
					t.Errorf("pool %d, seed %d, %v: %s (-once +%[4]s):\n%s", i, seed, values, how, gocmp.Diff(got["one pass"], got[how]))
				}
			}
		}
	}
}

// near0 compares rows of doubles, within 1e-9 relative.
func near0(a, b [][]string) bool {
	for i := range a {
		for j := range a[i] {
			x, errX := strconv.ParseFloat(a[i][j], 64)
			y, errY := strconv.ParseFloat(b[i][j], 64)
			if a[i][j] != b[i][j] && (errX != nil || errY != nil || !(math.Abs(x-y) <= 1e-9*math.Max(math.Abs(x), math.Abs(y)))) {
				return false
			}
		}
	}
	return len(a) == len(b)
}

// TestTotalsBeyond128BitsAreExact compares with arithmetic of any length.
func TestTotalsBeyond128BitsAreExact(t *testing.T) {
	l := newMergeRig(t)
	for scale, typ := range map[int]string{0: "DECIMAL(38,0)", 4: "DECIMAL(38,4)", 38: "DECIMAL(38,38)", 6: "DECIMAL(30,6)"} {
		c := mustCompile(t, fmt.Sprintf("SELECT sum(CAST(user_id AS %s)) AS s, avg(CAST(user_id AS %[1]s)) AS a FROM source", typ))
		if !c.Layout.View[0].Exact || !c.Layout.View[1].Exact || c.Layout.View[0].Type != "numeric" {
			t.Errorf("%s: %+v", typ, c.Layout.View)
		}
		for seed := range uint64(4) {
			r := rand.New(rand.NewPCG(seed, 53))
			total := new(big.Int)
			var records []record
			for i := range 1 + r.IntN(40) {
				digits := strings.Repeat("9", pick(r, 38, 38, 37, 20, 5))
				if typ == "DECIMAL(30,6)" {
					digits = digits[:min(30, len(digits))]
				}
				whole, _ := new(big.Int).SetString(digits, 10)
				whole.Sub(whole, big.NewInt(r.Int64N(1000)))
				if r.IntN(4) == 0 {
					whole.Neg(whole)
				}
				total.Add(total, whole)
				records = append(records, record{"user_id": pointed(whole, scale), "_partition": int32(0), "_offset": int64(i)})
			}
			mean := new(big.Float).SetPrec(2000).Quo(new(big.Float).SetPrec(2000).SetInt(total), new(big.Float).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
			average, _ := mean.Float64()
			want := [][]string{{pointed(total, scale), strconv.FormatFloat(average/float64(len(records)), 'g', -1, 64)}}
			for how, rows := range l.everyWay(c, r, records) {
				if rows[0][0] != want[0][0] || !near0([][]string{{want[0][1]}}, [][]string{{rows[0][1]}}) {
					t.Errorf("%s, seed %d, %s (-want +got):\n%s", typ, seed, how, gocmp.Diff(want, rows))
				}
			}
		}
	}
}

// pointed is a whole number divided by 10^scale.
func pointed(whole *big.Int, scale int) string {
	text := new(big.Int).Abs(whole).String()
	if scale > 0 {
		text = strings.Repeat("0", max(0, scale+1-len(text))) + text
		text = text[:len(text)-scale] + "." + text[len(text)-scale:]
	}
	if whole.Sign() < 0 {
		text = "-" + text
	}
	return text
}

// TestSpreadsOfWholeNumbersAndDecimalsAreExact compares with fractions of any length: times of a minute in milliseconds and
// nanoseconds, large ids that lie together, and decimals.
func TestSpreadsOfWholeNumbersAndDecimalsAreExact(t *testing.T) {
	l := newMergeRig(t)
	for _, of := range []struct {
		typ    string
		scale  int
		middle string
		within int64
	}{
		{"BIGINT", 0, "1700000000000", 60_000},
		{"BIGINT", 0, "1700000000000000000", 60_000_000_000},
		{"BIGINT", 0, "9223372036854775000", 500},
		{"BIGINT", 0, "-9223372036854775000", 500},
		{"INTEGER", 0, "0", 2_000_000_000},
		{"UBIGINT", 0, "18446744073709551000", 500},
		{"DECIMAL(10,2)", 2, "5000000000", 300},
		{"DECIMAL(18,18)", 18, "500000000000000000", 99},
		{"DECIMAL(38,6)", 6, "70000000000000000000000000000000000000", 1_000_000},
		{"DECIMAL(38,38)", 38, "3", 2},
	} {
		c := mustCompile(t, fmt.Sprintf(`SELECT var_pop(x) AS vp, var_samp(x) AS vs, stddev_pop(x) AS sp, stddev(x) AS s, covar_pop(x, y) AS c,
			covar_samp(y, x) AS cs, corr(x, y) AS r, regr_slope(y, x) AS sl, regr_r2(y, x) AS r2
			FROM (SELECT CAST(user_id AS %s) AS x, small AS y FROM source)`, of.typ))
		for _, v := range c.Layout.View {
			if !v.Exact {
				t.Errorf("%s: %s is not exact", of.typ, v.Name)
			}
		}
		middle, _ := new(big.Int).SetString(of.middle, 10)
		for seed := range uint64(2) {
			r := rand.New(rand.NewPCG(seed+4, 59))
			var records []record
			var xs, ys []*big.Rat
			for i := range pick(r, 1, 2, 5, 60) {
				x := new(big.Int).Add(middle, big.NewInt(r.Int64N(2*of.within)-of.within))
				y := int16(r.IntN(5))
				rec := record{"user_id": pointed(x, of.scale), "small": y, "_partition": int32(0), "_offset": int64(i)}
				value, _ := new(big.Rat).SetString(pointed(x, of.scale))
				xs, ys, records = append(xs, value), append(ys, new(big.Rat).SetInt64(int64(y))), append(records, rec)
			}
			got := l.everyWay(c, r, records)
			for _, how := range []string{"table", "staging"} {
				if diff := gocmp.Diff(got["one pass"], got[how]); diff != "" {
					t.Errorf("%s around %s, seed %d, %s (-once +%[4]s):\n%s", of.typ, of.middle, seed, how, diff)
				}
			}
			for j, want := range fractions(xs, ys) {
				x, err := strconv.ParseFloat(got["table"][0][j], 64)
				if want == "" != (got["table"][0][j] == null) {
					t.Errorf("%s around %s, seed %d: %s is %s, want %q", of.typ, of.middle, seed, c.Layout.View[j].Name, got["table"][0][j], want)
				}
				if w, _ := strconv.ParseFloat(want, 64); want != "" && (err != nil || !(math.Abs(x-w) <= 1e-14*math.Abs(w) || math.IsNaN(x) && math.IsNaN(w))) {
					t.Errorf("%s around %s, seed %d: %s is %v, want %v", of.typ, of.middle, seed, c.Layout.View[j].Name, x, w)
				}
			}
		}
	}
}

// fractions computes what the query above asks for; "" is NULL.
func fractions(xs, ys []*big.Rat) []string {
	around := func(a, b []*big.Rat) *big.Rat {
		n := new(big.Rat).SetInt64(int64(len(a)))
		sa, sb, sum := new(big.Rat), new(big.Rat), new(big.Rat)
		for i := range a {
			sa.Add(sa, a[i])
			sb.Add(sb, b[i])
			sum.Add(sum, new(big.Rat).Mul(a[i], b[i]))
		}
		return sum.Sub(sum, new(big.Rat).Quo(new(big.Rat).Mul(sa, sb), n))
	}
	number := func(r *big.Rat) float64 { f, _ := r.Float64(); return f }
	text := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	n := int64(len(xs))
	per := func(sum *big.Rat, count int64) (float64, bool) {
		if count == 0 {
			return 0, false
		}
		return number(new(big.Rat).Quo(sum, new(big.Rat).SetInt64(count))), true
	}
	var out []string
	add := func(value float64, known bool) {
		if !known {
			out = append(out, "")
			return
		}
		out = append(out, text(value))
	}
	xx, yy, xy := around(xs, xs), around(ys, ys), around(xs, ys)
	vp, _ := per(xx, n)
	vs, several := per(xx, n-1)
	add(vp, true)
	add(vs, several)
	add(math.Sqrt(vp), true)
	add(math.Sqrt(vs), several)
	cp, _ := per(xy, n)
	add(cp, true)
	cs, _ := per(xy, n-1)
	add(cs, several)
	switch {
	case xx.Sign() == 0:
		add(math.NaN(), true)
		add(math.NaN(), true)
		add(0, false)
	case yy.Sign() == 0:
		add(math.NaN(), true)
		add(0, true)
		add(1, true)
	default:
		root := new(big.Float).SetPrec(500).Sqrt(new(big.Float).SetPrec(500).SetRat(new(big.Rat).Mul(xx, yy)))
		r, _ := new(big.Float).Quo(new(big.Float).SetPrec(500).SetRat(xy), root).Float64()
		add(r, true)
		add(number(new(big.Rat).Quo(xy, xx)), true)
		add(number(new(big.Rat).Quo(new(big.Rat).Mul(xy, xy), new(big.Rat).Mul(xx, yy))), true)
	}
	return out
}

// TestTheTwoZeroesAreOne: -0 and 0 are equal, and nothing that hashes or prints them tells them apart.
func TestTheTwoZeroesAreOne(t *testing.T) {
	l := newMergeRig(t)
	minus := math.Copysign(0, -1)
	records := doublesOf(minus, 0, minus, -0.4, 0.4, 7)
	for i := range records {
		records[i]["f"] = float32(minus)
	}
	c, err := Compile(t.Context(), parseJob(t, "job.yaml", jobText(`SELECT round(d) AS k, approx_count_distinct(round(d)) AS a, approx_count_distinct([d * 0]) AS l,
		count(DISTINCT round(d)) AS c, histogram(round(d)) AS h, histogram(f) AS hf, min(f) AS low, max(-d * 0) AS high, first(f) AS f,
		arg_max(d * 0, f) AS am, approx_quantile(f, 0.5) AS q, sum(f) AS s, avg(f) AS m, covar_pop(f, d) AS cv FROM source GROUP BY 1`)+distinctMax))
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		for how, rows := range l.everyWay(c, rand.New(rand.NewPCG(seed, 61)), records) {
			want := [][]string{
				{"0", "1", "1", "1", `{"0.0": 5}`, `{"0.0": 5}`, "0", "0", "0", "0", "0", "0", "0", "0"},
				{"7", "1", "1", "1", `{"7.0": 1}`, `{"0.0": 1}`, "0", "0", "0", "0", "0", "0", "0", "0"},
			}
			if diff := gocmp.Diff(want, rows); diff != "" {
				t.Errorf("seed %d, %s (-want +got):\n%s", seed, how, diff)
			}
		}
	}
	rows := mustCompile(t, "SELECT d * 0 AS z FROM source")
	for how, got := range l.everyWay(rows, rand.New(rand.NewPCG(1, 1)), records[:1]) {
		if diff := gocmp.Diff([][]string{{"0"}}, got); diff != "" {
			t.Errorf("rows, %s:\n%s", how, diff)
		}
	}
}

// TestAQuantileIsNeverBeyondTheValues: buckets are named by their middle.
func TestAQuantileIsNeverBeyondTheValues(t *testing.T) {
	l := newMergeRig(t)
	c := mustCompile(t, "SELECT approx_quantile(d, 1) AS most, approx_quantile(d, 0) AS least FROM source")
	var fives []float64
	for i := range 24 {
		fives = append(fives, float64(5*i))
	}
	for _, of := range []struct {
		values []float64
		want   [][]string
	}{
		{fives, [][]string{{"115", "0"}}},
		{[]float64{math.Inf(1), math.Inf(-1), 3}, [][]string{{"Infinity", "-Infinity"}}},
		{[]float64{1e305, -1e305}, [][]string{{"1e+305", "-1e+305"}}},
		{[]float64{117.3}, [][]string{{"117.3", "117.3"}}},
	} {
		for how, got := range l.everyWay(c, rand.New(rand.NewPCG(3, 1)), doublesOf(of.values...)) {
			if diff := gocmp.Diff(of.want, got); diff != "" {
				t.Errorf("%v, %s (-want +got):\n%s", of.values, how, diff)
			}
		}
	}
}
