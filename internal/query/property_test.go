package query

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
)

var (
	seed  = flag.Uint64("seed", 1, "seed of the random queries; 0 takes one from the clock")
	cases = flag.Int("cases", 25, "number of random queries")
)

// TestRandomQueriesOverRandomRecordsOnRandomSplits: PARTIAL per part, merged and finished by PostgreSQL, equals DuckDB's one
// pass and a plain SQL pass over the records in PostgreSQL; so do both layers of mode lambda. Run more with -cases and other ones with -seed.
func TestRandomQueriesOverRandomRecordsOnRandomSplits(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", *seed)
	l := newMergeRig(t)
	l.exec("SET TimeZone = 'UTC'")
	rows := 0
	for i := range *cases {
		r := rand.New(rand.NewPCG(*seed, uint64(i)))
		duck, postgres := randomQuery(r)
		what := fmt.Sprintf("seed %d, case %d:\n%s\n", *seed, i, duck)
		c, err := Compile(t.Context(), parseJob(t, "job.yaml", jobText(duck)+distinctMax))
		if err != nil {
			t.Fatalf("%s%v", what, err)
		}
		var records []record
		for j := range pick(r, 0, 1, 5, 60, 200) {
			rec := randomRecord(r, int32(r.IntN(20)), int64(j))
			if r.IntN(9) == 0 {
				rec["_timestamp"] = nil
			}
			records = append(records, rec)
		}
		weird(r, records)
		l.source(c, records)
		merged, staged := l.merged(c, r, records)
		plain := l.plainly(c.Layout, postgres)
		rows += len(plain)
		for _, other := range []struct {
			name string
			rows [][]string
		}{
			{"the version table", merged},
			{"staging", staged},
			{"DuckDB's one pass", l.once(c, c.Oracle, records)},
			{"both layers", l.layered(c, r, records)},
		} {
			if !alike(c.Layout, unsigned(c.Layout, plain), unsigned(c.Layout, other.rows)) {
				t.Errorf("%s%s\n%s differs (-plain PostgreSQL +other):\n%s", what, postgres, other.name, cmp.Diff(plain, other.rows))
			}
		}
	}
	if rows < *cases {
		t.Errorf("%d queries gave %d rows only: this proves little", *cases, rows)
	}
}

// source puts records into a table of PostgreSQL of that name.
func (l *mergeRig) source(c *Compiled, records []record) {
	l.t.Helper()
	var columns, texts, casts, params []string
	for i, col := range c.source {
		pg, _ := resultType(col.typ)
		if col.name == "doc" || col.name == "_headers" {
			continue
		}
		columns = append(columns, ident(col.name)+" "+stored(pg))
		texts = append(texts, postgresText(ident(col.name), col.typ))
		casts = append(casts, fmt.Sprintf("c%d::%s", i, pg))
		params = append(params, fmt.Sprintf("c%d", i))
	}
	l.exec("DROP TABLE IF EXISTS source")
	l.exec("CREATE TABLE source (" + strings.Join(columns, ", ") + ")")
	read := "WITH source AS (SELECT * REPLACE (CAST(id AS UUID) AS id) FROM source) SELECT " + strings.Join(texts, ", ") + " FROM source"
	rows := mustRows(l.t, l.duck, read, reader(l.t, c.source, columnNames(c.source), records, 50))
	args, arrays := make([]any, len(texts)), make([]string, len(texts))
	for i := range texts {
		values := make([]*string, len(rows))
		for j := range rows {
			if rows[j][i] != null {
				values[j] = &rows[j][i]
			}
		}
		args[i], arrays[i] = values, fmt.Sprintf("$%d::text[]", i+1)
	}
	l.exec("INSERT INTO source SELECT "+strings.Join(casts, ", ")+" FROM unnest("+strings.Join(arrays, ", ")+") AS u ("+strings.Join(params, ", ")+")", args...)
}

// plainly runs a query of PostgreSQL over that table, its values cast to the types of the view.
func (l *mergeRig) plainly(layout job.Layout, sql string) [][]string {
	l.t.Helper()
	items := make([]string, len(layout.View))
	for i, v := range layout.View {
		items[i] = fmt.Sprintf("q.%s::%s::text", ident(v.Name), v.Type)
	}
	return sorted(l.query("SELECT " + strings.Join(items, ", ") + " FROM (" + sql + ") AS q"))
}

// unsigned gives zeroes no sign: they are equal, and which of them a group shows is left to each engine.
func unsigned(layout job.Layout, rows [][]string) [][]string {
	for _, row := range rows {
		for j, v := range layout.View {
			if row[j] == "-0" && (v.Type == "double precision" || v.Type == "real") {
				row[j] = "0"
			}
		}
	}
	return sorted(rows)
}

// alike compares rows: approximate values and averages, which plain PostgreSQL rounds otherwise, within 1e-9.
func alike(layout job.Layout, a, b [][]string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		for j, v := range layout.View {
			if a[i][j] == b[i][j] {
				continue
			}
			x, errX := strconv.ParseFloat(a[i][j], 64)
			y, errY := strconv.ParseFloat(b[i][j], 64)
			if v.Type != "double precision" || v.Key || errX != nil || errY != nil || !(math.Abs(x-y) <= 1e-9*max(100, math.Abs(x), math.Abs(y))) {
				return false
			}
		}
	}
	return true
}
