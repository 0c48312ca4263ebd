package query

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// suiteQueries is the number of queries of TestQueriesAsPeopleWriteThem.
const suiteQueries = 500

// shape makes a query as people write it: with arithmetic over aggregates, HAVING, DISTINCT, ORDER BY and LIMIT.
func shape(r *rand.Rand) string {
	number := func() string {
		return pick(r, "count(*)", "sum(small)", "sum(duration_ms % 1000)", "count(user_id)", "max(small)", "min(small)", "sum(price)", "avg(small)", "count(DISTINCT ok)",
			"count_if(ok)", "count(*) FILTER (WHERE ok)", "sum(small) FILTER (WHERE small > 0)", "max(price)", "stddev_pop(small)", "sum(DISTINCT small % 3)", "regr_avgx(price, small)", "min(DISTINCT small)",
			"quantile_disc(small % 3, 0.25)", "stddev(DISTINCT small % 3)")
	}
	var value func(depth int) string
	value = func(depth int) string {
		if depth == 0 {
			return number()
		}
		a, b := value(depth-1), value(depth-1)
		return pick(r, number(), a+" + "+b, a+" - "+b, "("+a+") * 2", "("+a+") / ("+b+")", "round(("+a+") / 3, 2)", "100.0 * ("+a+") / count(*)", "coalesce("+a+", 0)", "abs("+a+")",
			"CASE WHEN count(*) > 2 THEN "+a+" ELSE 0 END", "greatest("+a+", "+b+")", "("+a+")::double", "nullif("+a+", 0)", "CAST("+number()+" AS bigint)", "-("+a+")", "round("+a+", 1)")
	}
	condition := func() string {
		return pick(r, "count(*) > 2", "sum(small) > 10", "count(*) BETWEEN 1 AND 5", "max(small) IS NOT NULL", "avg(small) >= 3", "count(*) > 1 AND min(small) < 100", "sum(price) <> 0", "count(*) * 2 > 6", value(1)+" > 5")
	}
	keys := [][2]string{{"ok", "ok"}, {"url", "url"}, {"small % 3", "m"}, {"lower(url)", "low"}, {"date_trunc('day', local)", "at"}, {"CASE WHEN small > 0 THEN 'p' ELSE 'n' END", "sign"}}
	r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	keys = keys[:r.IntN(3)]
	if r.IntN(8) == 0 && len(keys) > 0 { // no aggregate
		var names []string
		for _, k := range keys {
			names = append(names, k[0]+" AS "+k[1])
		}
		list := strings.Join(names, ", ")
		if r.IntN(2) == 0 {
			return "SELECT DISTINCT " + list + " FROM source"
		}
		return "SELECT " + list + " FROM source GROUP BY ALL"
	}
	var items, groups []string
	for i, k := range keys {
		groups = append(groups, k[0])
		switch r.IntN(5) {
		case 0: // not selected
		case 1:
			items = append(items, fmt.Sprintf("concat(CAST(%s AS VARCHAR), '!') AS f%d", k[0], i), k[0]+" AS "+k[1])
		default:
			items = append(items, k[0]+" AS "+k[1])
		}
	}
	for i := range 1 + r.IntN(3) {
		items = append(items, fmt.Sprintf("%s AS a%d", value(r.IntN(3)), i))
	}
	text := "SELECT " + strings.Join(items, ", ") + " FROM source"
	if r.IntN(4) == 0 {
		text += " WHERE small > -50 OR ok"
	}
	if len(groups) > 0 {
		text += " GROUP BY " + strings.Join(groups, ", ")
	}
	if r.IntN(3) == 0 {
		text += " HAVING " + condition()
	}
	if r.IntN(3) == 0 {
		text += " ORDER BY " + pick(r, "a0 DESC", "a0", "count(*) DESC, a0", fmt.Sprintf("%d", len(items)))
		if r.IntN(2) == 0 {
			text += fmt.Sprintf(" LIMIT %d", 1+r.IntN(6))
		}
	}
	return text
}

// TestQueriesAsPeopleWriteThem compares what the view shows, merged from random parts, with DuckDB's answer to the query
// as it is written. The order of ties below a LIMIT is DuckDB's choice: there the oracle decides.
func TestQueriesAsPeopleWriteThem(t *testing.T) {
	l := newMergeRig(t)
	accepted, rows, limited := 0, 0, 0
	compiling := open(t, Config{Memory: compileMemory, plain: true})
	for i := range suiteQueries {
		r := rand.New(rand.NewPCG(5, uint64(i)))
		text := shape(r)
		c, err := compileIn(t.Context(), compiling, parseJob(t, "job.yaml", jobText(text)+distinctMax))
		if err != nil {
			t.Logf("%s\n%v", text, err)
			continue
		}
		accepted++
		records := tameRecords(r)
		l.exec("BEGIN")
		l.tables(c.Layout)
		cut := r.IntN(len(records) + 1)
		for _, part := range [][]record{records[:cut], records[cut:]} {
			l.upsert(c.Layout, l.land(c, part))
		}
		table, staged := l.served(c.Layout, "v"), l.served(c.Layout, "staged")
		oracle, err := l.answered(c, c.Oracle, records)
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		l.exec("ROLLBACK")
		rows += len(table)
		for name, got := range map[string][][]string{"the version table": table, "staging": staged} {
			if !l.alike(c, got, oracle) {
				t.Errorf("%s\n%s differs from one pass (-one pass +merged):\n%s", text, name, cmp.Diff(oracle, got))
			}
		}
		if c.Layout.Top != "" {
			limited++
			continue
		}
		if plain, err := l.answered(c, text, records); err == nil && !l.alike(c, table, plain) {
			t.Errorf("%s\ndiffers from DuckDB (-DuckDB +view):\n%s", text, cmp.Diff(plain, table))
		}
	}
	t.Logf("%d of %d queries accepted, %d with LIMIT, %d rows", accepted, suiteQueries, limited, rows)
	if accepted < suiteQueries*97/100 || rows < suiteQueries {
		t.Errorf("%d of %d queries were accepted and gave %d rows", accepted, suiteQueries, rows)
	}
}

// tameRecords are records whose totals do not overflow, with few keys.
func tameRecords(r *rand.Rand) []record {
	var out []record
	for i := range pick(r, 1, 4, 25) {
		rec := randomRecord(r, int32(r.IntN(4)), int64(i))
		rec["url"] = pick[any](r, "/a", "/A", "/b", nil)
		rec["local"] = int64(pick(r, 0, 1, 18321)) * microsPerDay
		rec["price"] = pick[any](r, int64(0), int64(150), int64(-1025), int64(99999), nil)
		rec["small"] = pick[any](r, int16(0), int16(3), int16(-7), int16(40), int16(101), nil)
		rec["duration_ms"] = int64(r.IntN(5000))
		out = append(out, rec)
	}
	return out
}

// alike compares rows of a view: approximate columns and doubles within 1e-9, loose ones not.
func (l *mergeRig) alike(c *Compiled, a, b [][]string) bool {
	if len(a) != len(b) {
		return false
	}
	used := make([]bool, len(b))
	for _, x := range a {
		found := false
		for j, y := range b {
			if used[j] || found {
				continue
			}
			same := true
			for i, v := range c.Layout.View {
				same = same && (v.Loose || nearly(v.Type, x[i], y[i]) || v.Type == "double precision" && near(x[i], y[i], false))
			}
			used[j], found = same, same
		}
		if !found {
			return false
		}
	}
	return true
}

// answered is once for a query over the columns of the view, which DuckDB may refuse over these records.
func (l *mergeRig) answered(c *Compiled, sql string, records []record) ([][]string, error) {
	l.t.Helper()
	if prelude := c.prelude(); prelude != "" && sql != c.Oracle {
		sql = prelude + "SELECT * FROM (" + sql + ")"
	}
	rows, err := rowsOf(l.t.Context(), l.duck, answer(sql, c.answers), reader(l.t, c.source, c.Fields, records, 100))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	var casts, names, params []string
	args := make([]any, len(c.answers))
	for i, v := range c.Layout.View {
		names, params = append(names, fmt.Sprintf("c%d", i)), append(params, fmt.Sprintf("$%d::text[]", i+1))
		casts = append(casts, fmt.Sprintf("c%d::%s::text", i, v.Type))
		values := make([]*string, len(rows))
		for j := range rows {
			if rows[j][i] != null {
				values[j] = &rows[j][i]
			}
		}
		args[i] = values
	}
	return sorted(l.query("SELECT "+strings.Join(casts, ", ")+" FROM unnest("+strings.Join(params, ", ")+") AS u ("+strings.Join(names, ", ")+")", args...)), nil
}
