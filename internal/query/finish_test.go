package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

// conformance lists what may be computed from aggregates, over the columns of the test jobs. Each is tried over all
// combinations of values at the edges: NULL, 0, negative, halves, the least and the greatest, NaN, infinity.
var conformance = map[string][]string{
	"whole numbers": {
		"duration_ms + small", "duration_ms - small", "duration_ms * small", "-duration_ms", "abs(duration_ms)", "small * small * small * small",
		"duration_ms / small", "small / duration_ms", "small // 7", "duration_ms // small", "duration_ms % small", "small % 7", "-small // 2",
		"duration_ms + 0.5", "duration_ms * 1.25", "100.0 * small / duration_ms", "1e3 * small", "small::double / 3", "(small / 4)::int", "(small / 4)::bigint",
		"duration_ms::int", "duration_ms::smallint", "(duration_ms / 1000)::int", "duration_ms::decimal(18,3)", "duration_ms::double", "sign(small)", "small::varchar || 'x'",
		"round(small / 3, 2)", "round(small, 1)", "round(small / 8)", "floor(small / 8)", "ceil(small / 8)", "trunc(small / 8)", "sqrt(small)", "ln(small)", "exp(small / 100)", "log10(small)",
		"greatest(small, duration_ms)", "least(small, 3)", "coalesce(small, 0)", "coalesce(small, duration_ms, -1)", "nullif(small, 0)", "ifnull(small, 5)",
		"CASE WHEN small > 0 THEN duration_ms / small ELSE 0 END", "CASE small WHEN 0 THEN 'none' WHEN 1 THEN 'one' END", "small > 0", "small = duration_ms",
		"small IS NULL", "small IS NOT NULL AND NOT (small < 5)", "small IN (1, 2, NULL)", "small NOT IN (0, 7)", "small BETWEEN -1 AND 7", "small IS DISTINCT FROM duration_ms",
		"small > 0 AND duration_ms > 0", "small > 0 OR duration_ms > 0", "(small > 0)::int", "if(small > 0, 1, 2)", "duration_ms / 0", "small / NULL", "duration_ms + 9223372036854775807",
	},
	"decimals": {
		"price + small", "price - 0.5", "price * price", "price * 0.005", "price / small", "price / 3", "-price", "abs(price)", "round(price, 1)", "round(price)", "round(price, 5)",
		"floor(price)", "ceil(price)", "trunc(price)", "price::int", "price::bigint", "price::decimal(18,1)", "price::decimal(12,0)", "price::decimal(20,4)", "price::double",
		"price > 1.005", "price = small", "price * 1.1 * 1.1", "coalesce(price, 0)", "greatest(price, small)", "round(price / 7, 2)", "round(price * 0.5, 2)", "price * 2 / 3 + 1",
	},
	"doubles": {
		"d + f::double", "d - f::double", "d * f::double", "d / f::double", "d * d * d", "d / 1e-200 / 1e-200", "-d", "abs(d)", "round(d)", "round(d, 1)", "round(d, 2)", "round(d, 3)",
		"floor(d)", "ceil(d)", "trunc(d)", "sqrt(d)", "ln(d)", "log10(d)", "exp(d)", "d::int", "d::bigint", "d::decimal(18,2)", "d::decimal(9,3)", "d > 0", "d = f::double", "d IN (1.5, 2.5)",
		"isnan(d)", "coalesce(d, 0)", "greatest(d, 0)", "least(d, f::double)", "CASE WHEN d > 1 THEN d ELSE 0 END", "d / small", "small / d", "d + 1", "d * 100", "round(d * 100) / 100", "d / 0", "nullif(d, 0)",
	},
	"times": {
		"local - ts_local", "ts - ts_other", "day - DATE '2020-02-29'", "epoch(ts)", "epoch(local)", "epoch(local - ts_local)", "date_diff('second', ts_other, ts)", "date_diff('hour', ts_local, local)",
		"date_diff('day', ts_local, local)", "date_diff('minute', ts_other, ts)", "date_diff('millisecond', ts_local, local)", "ts > TIMESTAMPTZ '2020-01-01 00:00:00+00'", "local::date", "ts::date",
		"local - ts_local > INTERVAL 1 DAY", "greatest(local, ts_local)", "coalesce(local, TIMESTAMP '2000-01-01 00:00:00')", "extract(epoch FROM local)", "day = DATE '2020-02-29'",
	},
	"texts": {
		"url || user_id", "concat(url, user_id)", "length(url)", "url = user_id", "url < user_id", "url >= 'a'", "coalesce(url, 'none')", "greatest(url, user_id)", "url IN ('Z', 'é')",
		"CASE WHEN url > 'a' THEN url ELSE user_id END", "url || '-' || small::varchar", "url IS NULL", "ok AND url = ''", "NOT ok", "ok OR small > 0", "CASE WHEN ok THEN 1 ELSE 0 END",
	},
}

var columnWord = regexp.MustCompile(`\b(duration_ms|small|price|d|f|local|ts_local|ts_other|ts|day|url|user_id|ok)\b(?:\()?`)

// edgeRecords are records with all pairs of values at the edges.
func edgeRecords() []record {
	wholes := []any{nil, int64(0), int64(1), int64(-1), int64(7), int64(math.MaxInt64), int64(math.MinInt64), int64(1000005)}
	smalls := []any{nil, int16(0), int16(1), int16(-1), int16(3), int16(7), int16(12), int16(-12), int16(32767), int16(-32768)}
	prices := []any{nil, int64(0), int64(50), int64(-50), int64(150), int64(250), int64(-250), int64(101), int64(9999999999), int64(-9999999999), int64(12345)}
	numbers := []any{
		nil, 0.0, math.Copysign(0, -1), 1.5, -1.5, 2.5, 0.5, -0.5, 0.49999999999999994, 2.675, 1.005, -2.675, 1e-300, 5e-324, 1e300, -1e300, math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1),
		1e15 + 0.5, 9007199254740993.0, 2147483646.5, -2147483647.5, 2147483648.5, 9.3e18, 123456.785, 1e-7, 1e16, 3.0, 4503599627370497.5,
	}
	floats := []any{nil, float32(0), float32(2), float32(-0.25), float32(1e-38), float32(3e38), float32(math.Inf(1)), float32(math.NaN())}
	at := func(days, micros int64) int64 { return days*microsPerDay + micros }
	times := []any{nil, at(0, 0), at(18321, 3_600_000_000), at(18321, 86_399_999_999), at(18322, 1), at(-10, 5), at(beforeChrist, 0), int64(infiniteTime), int64(-infiniteTime), at(farAhead, 0)}
	days := []any{nil, int32(0), int32(18321), int32(-1), int32(farAhead)}
	texts := []any{nil, "", "a", "Z", "é", "e\u0301", "😀", "a'b"}
	r := rand.New(rand.NewPCG(1, 2))
	var out []record
	for i := range 400 {
		rec := record{
			"duration_ms": wholes[i%len(wholes)], "small": smalls[(i/len(wholes))%len(smalls)], "price": prices[i%len(prices)],
			"d": numbers[i%len(numbers)], "f": floats[(i/len(numbers))%len(floats)], "local": times[i%len(times)], "ts": times[(i/len(times))%len(times)],
			"_timestamp": times[i%len(times)], "day": days[i%len(days)], "url": texts[i%len(texts)], "user_id": texts[(i/len(texts))%len(texts)],
			"_topic": "pageviews", "_partition": int32(0), "_offset": int64(i),
		}
		if i%3 > 0 {
			rec["ok"] = i%3 == 1
		}
		if i > 300 {
			rec["d"] = math.Round(r.NormFloat64()*1e5) / 1000
		}
		out = append(out, rec)
	}
	return out
}

// TestPostgreSQLComputesFromAggregatesWhatDuckDBDoes tries each operator and function that may be used above aggregates.
// Where DuckDB raises an error the view has NULL, or the exact number that DuckDB's type is too narrow for.
func TestPostgreSQLComputesFromAggregatesWhatDuckDBDoes(t *testing.T) {
	l := newMergeRig(t)
	records := edgeRecords()
	for group, list := range conformance {
		var items, alone []string
		for i, e := range list {
			column := func(of func(string) string) string {
				parts := strings.Split(e, "'")
				for i := 0; i < len(parts); i += 2 {
					parts[i] = columnWord.ReplaceAllStringFunc(parts[i], func(name string) string {
						if strings.HasSuffix(name, "(") {
							return name
						}
						return of(name)
					})
				}
				return strings.Join(parts, "'")
			}
			real := map[string]string{"ts_local": "CAST(_timestamp AT TIME ZONE 'UTC' AS TIMESTAMP)", "ts_other": "_timestamp"}
			name := func(s string) string {
				if r, ok := real[s]; ok {
					return r
				}
				return s
			}
			items = append(items, column(func(s string) string { return "max(" + name(s) + ")" })+fmt.Sprintf(" AS x%d", i))
			alone = append(alone, "TRY("+column(func(s string) string { return "(" + name(s) + ")" })+fmt.Sprintf(") AS x%d", i))
		}
		c, err := Compile(t.Context(), parseJob(t, "job.yaml", jobText("SELECT _offset AS k, "+strings.Join(items, ",\n")+" FROM source GROUP BY 1")))
		if err != nil {
			t.Errorf("%s: %v", group, err)
			continue
		}
		l.tables(c.Layout)
		l.typed(c.Layout)
		l.upsert(c.Layout, l.land(c, records))
		served := l.served(c.Layout, "v")
		oracle := l.once(c, c.Oracle, records)
		plain := l.alone(c, alone, records)
		failed := map[int]int{}
		if len(served) != len(oracle) || len(served) != len(plain) {
			t.Fatalf("%s: %d, %d and %d rows", group, len(served), len(oracle), len(plain))
		}
		for i := range served {
			for j, v := range c.Layout.View {
				sameAsOracle := nearly(v.Type, served[i][j], oracle[i][j])
				sameAsPlain := nearly(v.Type, served[i][j], plain[i][j]) || plain[i][j] == null && numeric(v.Type)
				if (!sameAsOracle || !sameAsPlain) && failed[j] < 3 {
					failed[j]++
					t.Errorf("%s: %s over record %s: served %q, oracle %q, DuckDB %q", group, list[max(0, j-1)], served[i][0], served[i][j], oracle[i][j], plain[i][j])
				}
			}
		}
	}
}

// alone evaluates expressions over each record, in statements of their own: DuckDB computes what several expressions
// share outside of TRY.
func (l *mergeRig) alone(c *Compiled, expressions []string, records []record) [][]string {
	l.t.Helper()
	var out [][]string
	for i, e := range expressions {
		layout := c.Layout
		layout.View = []job.ViewColumn{c.Layout.View[0], c.Layout.View[i+1]}
		one := *c
		one.Layout = layout
		rows := l.once(&one, "SELECT _offset AS k, "+e+" FROM source", records)
		if out == nil {
			out = make([][]string, len(rows))
		}
		for j, row := range rows {
			if i == 0 {
				out[j] = append(out[j], row[0])
			}
			out[j] = append(out[j], row[1])
		}
	}
	return out
}

// nearly compares two values of a column; doubles within what the formulas for large and small ones promise.
func nearly(typ, a, b string) bool {
	switch {
	case a == b:
		return true
	case a == null || b == null:
		return false
	case strings.HasPrefix(typ, "numeric"):
		trim := func(s string) string {
			if strings.Contains(s, ".") {
				s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
			}
			return s
		}
		return trim(a) == trim(b)
	case typ != "double precision":
		return false
	}
	var x, y float64
	if _, err := fmt.Sscan(a, &x); err != nil {
		return false
	}
	if _, err := fmt.Sscan(b, &y); err != nil {
		return false
	}
	tiny := math.Abs(x) < 1e-299 && math.Abs(y) < 1e-299
	huge := math.Abs(x) > 1.5e308 && math.Abs(y) > 1.5e308 && math.Signbit(x) == math.Signbit(y)
	return tiny || huge || math.Abs(x-y) <= 1e-13*math.Abs(x)
}
