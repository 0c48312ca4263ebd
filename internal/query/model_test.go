package query

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// merged runs a compiled query over records split at random and gives the rows of its view, from the table and from staging.
func (l *mergeRig) merged(c *Compiled, r *rand.Rand, records []record) (table, staged [][]string) {
	l.t.Helper()
	l.tables(c.Layout)
	l.typed(c.Layout)
	for _, part := range shards(r, records) {
		l.upsert(c.Layout, l.land(c, part))
	}
	return l.served(c.Layout, "v"), l.served(c.Layout, "staged")
}

// logged makes records whose times and small numbers are often equal, over partitions and topics.
func logged(r *rand.Rand, n int, topics ...string) []record {
	var out []record
	for i := range n {
		rec := record{
			"url": pick(r, "/a", "/b"), "user_id": fmt.Sprint("user ", i), "small": int16(r.IntN(3)), "ok": r.IntN(2) == 0,
			"_topic": pick(r, topics...), "_partition": int32(r.IntN(12)), "_offset": int64(i), "_timestamp": int64(r.IntN(3)) * 1_000_000,
		}
		for _, name := range []string{"user_id", "small", "_timestamp"} {
			if r.IntN(6) == 0 {
				rec[name] = nil
			}
		}
		out = append(out, rec)
	}
	return out
}

// inOrder compares two records by the values of columns; a record without a time was before all others.
func inOrder(a, b record, columns ...string) int {
	for _, c := range columns {
		x, y := int64(math.MinInt64), int64(math.MinInt64)
		switch v := a[c].(type) {
		case string:
			if d := cmp.Compare(v, b[c].(string)); d != 0 {
				return d
			}
			continue
		case int64:
			x = v
		case int32:
			x = int64(v)
		case int16:
			x = int64(v)
		}
		switch v := b[c].(type) {
		case int64:
			y = v
		case int32:
			y = int64(v)
		case int16:
			y = int64(v)
		}
		if d := cmp.Compare(x, y); d != 0 {
			return d
		}
	}
	return 0
}

// TestFirstLastAndArgGoByTheLog compares with a model in Go: both PARTIAL and the oracle run in the same engine.
func TestFirstLastAndArgGoByTheLog(t *testing.T) {
	const query = `SELECT url, first(user_id) AS f, last(user_id) AS l, any_value(user_id) AS a, arg_max(user_id, small) AS hi, arg_min(user_id, small) AS lo,
		arg_max_null(user_id, small) AS hin, last(user_id) FILTER (WHERE ok) AS lok FROM source GROUP BY url`
	inLog := []string{"_timestamp", "_topic", "_partition", "_offset"}
	byValue := []string{"small", "_topic", "_partition", "_offset"}
	known := func(columns ...string) func(record) bool {
		return func(r record) bool {
			return !slices.ContainsFunc(columns, func(c string) bool { return r[c] == nil })
		}
	}
	model := []struct {
		order []string
		last  bool
		where func(record) bool
	}{
		{inLog, false, known()},
		{inLog, true, known()},
		{inLog, false, known("user_id")},
		{byValue, true, known("user_id", "small")},
		{byValue, false, known("user_id", "small")},
		{byValue, true, known("small")},
		{inLog, true, func(r record) bool { return r["ok"] == true }},
	}
	l := newMergeRig(t)
	for _, topics := range [][]string{{"pageviews"}, {"pageviews", "page", "page.old"}} {
		spec := parseJob(t, "job.yaml", strings.Replace(jobText(query), "[pageviews]", "["+strings.Join(topics, ", ")+"]", 1))
		c, err := Compile(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(10) {
			r := rand.New(rand.NewPCG(seed, 11))
			records := logged(r, pick(r, 1, 5, 60), topics...)
			var want [][]string
			for _, url := range []string{"/a", "/b"} {
				group := slices.DeleteFunc(slices.Clone(records), func(rec record) bool { return rec["url"] != url })
				if len(group) == 0 {
					continue
				}
				row := []string{url}
				for _, m := range model {
					value := null
					candidates := slices.DeleteFunc(slices.Clone(group), func(rec record) bool { return !m.where(rec) })
					slices.SortFunc(candidates, func(a, b record) int { return inOrder(a, b, m.order...) })
					if m.last {
						slices.Reverse(candidates)
					}
					if len(candidates) > 0 && candidates[0]["user_id"] != nil {
						value = candidates[0]["user_id"].(string)
					}
					row = append(row, value)
				}
				want = append(want, row)
			}
			table, staged := l.merged(c, r, records)
			for name, got := range map[string][][]string{"table": table, "staging": staged, "one pass": l.once(c, c.Oracle, records)} {
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d, %d topics, %s (-model +got):\n%s", seed, len(topics), name, diff)
				}
			}
		}
	}
}

// TestSpreadsKeepNineDigits compares with the textbook formulas over two passes, relative to the value.
func TestSpreadsKeepNineDigits(t *testing.T) {
	const query = `SELECT var_pop(d) AS vp, var_samp(d) AS vs, stddev_pop(d) AS sp, stddev(d) AS s, covar_pop(d, f) AS cp, covar_samp(d, f) AS cs,
		corr(d, f) AS r, regr_slope(d, f) AS sl, regr_r2(d, f) AS r2 FROM source`
	l := newMergeRig(t)
	c := mustCompile(t, query)
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 13))
		shift := pick(r, 0, 3, -1000, 1e6)
		var records []record
		for i := range pick(r, 2, 3, 50, 2000) {
			rec := record{"d": shift + r.NormFloat64()*10, "_partition": int32(i % 3), "_offset": int64(i)}
			rec["f"] = float32(rec["d"].(float64)*0.5 - 7 + r.NormFloat64())
			if r.IntN(10) == 0 && i > 1 {
				rec[pick(r, "d", "f")] = nil
			}
			records = append(records, rec)
		}
		want := spreads(records)
		table, staged := l.merged(c, r, records)
		for name, got := range map[string][][]string{"table": table, "staging": staged, "one pass": l.once(c, c.Oracle, records)} {
			for i, v := range c.Layout.View {
				x, err := strconv.ParseFloat(got[0][i], 64)
				if err != nil || !(math.Abs(x-want[i]) <= 1e-9*math.Abs(want[i])) {
					t.Errorf("seed %d, %s, %d records around %g: %s is %s, want %v", seed, name, len(records), shift, v.Name, got[0][i], want[i])
				}
			}
		}
	}
}

// spreads computes what the query of TestSpreadsKeepNineDigits asks for.
func spreads(records []record) []float64 {
	var ys, py, px []float64
	for _, rec := range records {
		y, isY := rec["d"].(float64)
		x, isX := rec["f"].(float32)
		if isY {
			ys = append(ys, y)
		}
		if isY && isX {
			py, px = append(py, y), append(px, float64(x))
		}
	}
	around := func(a, b []float64) float64 {
		var ma, mb, sum float64
		for i := range a {
			ma, mb = ma+a[i]/float64(len(a)), mb+b[i]/float64(len(a))
		}
		for i := range a {
			sum += (a[i] - ma) * (b[i] - mb)
		}
		return sum
	}
	n, m := float64(len(ys)), float64(len(py))
	yy, xx, xy := around(py, py), around(px, px), around(py, px)
	all := around(ys, ys)
	return []float64{
		all / n, all / (n - 1), math.Sqrt(all / n), math.Sqrt(all / (n - 1)), xy / m, xy / (m - 1),
		xy / math.Sqrt(xx*yy), xy / xx, xy * xy / xx / yy,
	}
}

// TestEqualValuesHaveNoSpread: the spread is exactly 0 on every split, and correlations have no value, as in one pass.
func TestEqualValuesHaveNoSpread(t *testing.T) {
	const query = `SELECT var_pop(d) AS v, stddev(d) AS s, covar_pop(d, f) AS c, corr(d, f) AS r, regr_slope(d, f) AS sl, regr_r2(f, d) AS r2, regr_r2(d, f) AS r3 FROM source`
	l := newMergeRig(t)
	c := mustCompile(t, query)
	exactly := c.Layout
	exactly.View = slices.Clone(exactly.View)
	for i := range exactly.View {
		exactly.View[i].Exact = true
	}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 17))
		constant := pick(r, 0, 0.1, 1e15, -7, 1e-200, 1e300)
		var records []record
		for i := range pick(r, 1, 2, 40) {
			records = append(records, record{"d": constant, "f": float32(seed%2) * float32(i), "_partition": int32(0), "_offset": int64(i)})
		}
		table, staged := l.merged(c, r, records)
		want := l.once(c, c.Oracle, records)
		l.compare(fmt.Sprintf("seed %d, table", seed), exactly, want, table)
		l.compare(fmt.Sprintf("seed %d, staging", seed), exactly, want, staged)
	}
}

// TestVariablesWithNothingInCommonHaveNoCorrelation: points of a grid, whose products cancel, give exactly 0 on every split.
func TestVariablesWithNothingInCommonHaveNoCorrelation(t *testing.T) {
	l := newMergeRig(t)
	c := mustCompile(t, `SELECT covar_pop(d, f) AS cp, covar_samp(d, f) AS cs, corr(d, f) AS r, regr_slope(d, f) AS sl, regr_r2(f, d) AS r2 FROM source`)
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 29))
		var records []record
		for y := range 2 + r.IntN(6) {
			for x := range 5 {
				records = append(records, record{"d": 0.1 * float64(y), "f": float32(x)/7 + 100, "_partition": int32(0), "_offset": int64(len(records))})
			}
		}
		table, staged := l.merged(c, r, records)
		for name, got := range map[string][][]string{"table": table, "staging": staged, "one pass": l.once(c, c.Oracle, records)} {
			if diff := gocmp.Diff([][]string{{"0", "0", "0", "0", "0"}}, got); diff != "" {
				t.Errorf("seed %d, %s:\n%s", seed, name, diff)
			}
		}
	}
}
