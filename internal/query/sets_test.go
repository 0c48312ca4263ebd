package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// TestQuantilesAreWithinTheirBucket compares with the exact value of that rank.
func TestQuantilesAreWithinTheirBucket(t *testing.T) {
	l := newMergeRig(t)
	fractions := []float64{0, 0.01, 0.25, 0.5, 0.9, 0.99, 1}
	query := "SELECT "
	for i, q := range fractions {
		query += fmt.Sprintf("approx_quantile(d, %v) AS q%d, ", q, i)
	}
	c := mustCompile(t, query+"count(*) AS n FROM source")
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 19))
		scale := pick(r, 1e-9, 1, 1e12)
		var records []record
		var values []float64
		for i := range pick(r, 1, 2, 500, 3000) {
			v := math.Exp(r.NormFloat64()*3) * scale
			if r.IntN(5) == 0 {
				v = -v
			}
			values = append(values, v)
			records = append(records, record{"d": v, "_partition": int32(0), "_offset": int64(i)})
		}
		records = append(records, record{"d": nil, "_partition": int32(1)})
		slices.Sort(values)
		table, staged := l.merged(c, r, records)
		for name, got := range map[string][][]string{"table": table, "staging": staged, "one pass": l.once(c, c.Oracle, records)} {
			for i, q := range fractions {
				n := float64(len(values))
				want := values[int(max(1, n-math.Floor(n-n*q)))-1]
				x, err := strconv.ParseFloat(got[0][i], 64)
				if err != nil || !(math.Abs(x-want) <= 0.0152*math.Abs(want)) {
					t.Errorf("seed %d, %s: the %v quantile of %d values is %s, want %v", seed, name, q, len(values), got[0][i], want)
				}
			}
		}
	}
}

// TestBucketsHoldWhatPrintsLikeNumbers: every double has a bucket that both databases read back.
func TestBucketsHoldWhatPrintsLikeNumbers(t *testing.T) {
	l := newMergeRig(t)
	c := mustCompile(t, "SELECT approx_quantile(d, 0.5) AS q FROM source")
	for v, want := range map[float64]string{
		0: "0", math.Copysign(0, -1): "0", 1: "1", -1: "-1", 0.1: "0.1", 1e300: "1e+300", 5e-324: "5e-324", -1e-299: "-1e-299",
		math.MaxFloat64: "1.7976931348623157e+308", -2e300: "-2e+300", math.Inf(1): "Infinity", math.Inf(-1): "-Infinity", math.NaN(): "NaN",
		9999: "10000", 1234: "1240", 2468: "2450", -5678: "-5700",
	} {
		records := []record{{"d": v}}
		if math.Abs(v) < 1e300 { // an estimate stays within the values: between others it is that of its bucket
			records = append(records, record{"d": math.Inf(-1)}, record{"d": math.Inf(1)})
		}
		l.tables(c.Layout)
		l.upsert(c.Layout, l.land(c, records))
		got, once := l.served(c.Layout, "v")[0][0], l.once(c, c.Oracle, records)[0][0]
		if got != want || once != want {
			t.Errorf("the bucket of %v is %s, in one pass %s, want %s", v, got, once, want)
		}
	}
}

// TestManyDifferentValuesAreCountedAboutRight: exactly below the limit, within four standard errors beyond.
func TestManyDifferentValuesAreCountedAboutRight(t *testing.T) {
	l := newMergeRig(t)
	c := mustCompile(t, "SELECT approx_count_distinct(duration_ms) AS n FROM source")
	for _, n := range []int{0, 1, 1000, 1023, 1024, 5000, 30_000} {
		var records []record
		for i := range n {
			records = append(records, record{"duration_ms": int64(i) * 7919, "_partition": int32(i % 3)}, record{"duration_ms": int64(i) * 7919})
		}
		r := rand.New(rand.NewPCG(uint64(n), 23))
		table, staged := l.merged(c, r, records)
		once := l.once(c, c.Oracle, records)
		got, err := strconv.Atoi(table[0][0])
		if err != nil {
			t.Fatal(err)
		}
		if staged[0][0] != table[0][0] || once[0][0] != table[0][0] {
			t.Errorf("%d values: %s in the table, %s in staging, %s in one pass", n, table[0][0], staged[0][0], once[0][0])
		}
		bound := 0.0
		if n >= hashes {
			bound = 4 / math.Sqrt(hashes-2)
		}
		if math.Abs(float64(got-n)) > bound*float64(n) {
			t.Errorf("%d values are counted as %d", n, got)
		}
	}
}
