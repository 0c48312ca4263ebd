package query

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
)

// rowCase is a random query without an aggregate and the same in plain PostgreSQL, over table source with tombstones.
type rowCase struct{ duck, postgres, serve string }

// randomRows is a query whose rows are appended, or of which the latest of each key is kept.
func randomRows(r *rand.Rand) rowCase {
	var items, twins []string
	add := func(duck, postgres string) {
		name := fmt.Sprintf(" AS c%d", len(items))
		items, twins = append(items, duck+name), append(twins, postgres+name)
	}
	upsert, same := r.IntN(2) == 0, "d.c0 = y.c0"
	serve, keys, order := "", "c0", "coalesce(_timestamp, '-infinity') DESC, _topic DESC, _partition DESC, _offset DESC"
	if upsert {
		add("coalesce(nullif(left(url, 2), ''), decode(_key))", "coalesce(nullif(left(url, 2), ''), convert_from(_key, 'UTF8'))")
		if r.IntN(2) == 0 {
			add("coalesce(small % 3, 0)", "coalesce(small % 3, 0)")
			keys, same = "c0, c1", same+" AND d.c1 = y.c1"
		}
		serve = "  key: [" + keys + "]\n"
		if r.IntN(2) == 0 {
			by := pick(r, "coalesce(small % 4, -1)", "coalesce(ts, _timestamp, TIMESTAMPTZ '1999-01-01')", "coalesce(url, '')", "coalesce(price, 0)")
			serve += fmt.Sprintf("  order_by: c%d\n", len(items))
			add(by, by)
			order = by + " DESC, _topic DESC, _partition DESC, _offset DESC"
		}
		order = keys + ", " + order
	}
	several := r.IntN(3) == 0 // rows of a record
	for range 1 + r.IntN(5) {
		x := pick(r, scalars(pick(r, everyKind[:]...))...)
		add(x, x)
	}
	before, from, where := "", "source", "true"
	if inner := pick(r, scalars(truth)...); r.IntN(2) == 0 {
		before, from, where = "WITH c AS (SELECT * FROM source WHERE "+inner+") ", "(SELECT * FROM c) AS s", "("+inner+")"
	}
	filter := ""
	if r.IntN(2) == 0 {
		x := pick(r, scalars(truth)...)
		filter, where = " WHERE "+x, where+" AND ("+x+")"
	}
	switch {
	case several && upsert: // one row a record, or none: a tombstone has no list
		items, twins = append(items, "n"), append(twins, "url AS n")
		from, where = "(SELECT *, unnest(string_split(url, '#')) AS n FROM "+from+")", where+" AND url IS NOT NULL"
	case several:
		items, twins = append(items, "n"), append(twins, "n")
		from = "(SELECT *, unnest([1, small % 2, 1]) AS n FROM " + from + ")"
	}
	out := rowCase{duck: before + "SELECT " + strings.Join(items, ", ") + " FROM " + from + filter, serve: serve}
	switch {
	case upsert:
		out.postgres = fmt.Sprintf(`WITH x AS (SELECT %[1]s, coalesce(_timestamp, '-infinity') AS at, * FROM source WHERE _tombstone OR (%[2]s))
			SELECT * FROM (SELECT DISTINCT ON (%[3]s) * FROM x WHERE NOT _tombstone ORDER BY %[4]s) AS y WHERE NOT EXISTS (SELECT FROM x AS d WHERE d._tombstone AND %[5]s
				AND CASE WHEN d._topic = y._topic AND d._partition = y._partition THEN d._offset > y._offset ELSE d.at > y.at END)`,
			strings.Join(twins, ", "), where, keys, order, same)
	case several:
		out.postgres = "SELECT " + strings.Join(twins, ", ") + " FROM source, unnest(ARRAY[1, small % 2, 1]) AS u (n) WHERE " + where
	default:
		out.postgres = "SELECT " + strings.Join(twins, ", ") + " FROM source WHERE " + where
	}
	return out
}

// TestRandomRowsOverRandomRecordsOnRandomSplits is TestRandomQueriesOverRandomRecordsOnRandomSplits for queries without an aggregate.
func TestRandomRowsOverRandomRecordsOnRandomSplits(t *testing.T) {
	l := newMergeRig(t)
	l.exec("SET TimeZone = 'UTC'")
	rows := map[job.Shape]int{}
	for i := range *cases {
		r := rand.New(rand.NewPCG(*seed, uint64(i)+1<<32))
		q := randomRows(r)
		what := fmt.Sprintf("seed %d, case %d:\n%s\n%s", *seed, i, q.duck, q.serve)
		c, err := Compile(t.Context(), parseJob(t, "job.yaml", jobText(q.duck)+q.serve))
		if err != nil {
			t.Fatalf("%s%v", what, err)
		}
		records := rowRecords(r, q.serve != "")
		l.source(c, records)
		merged, staged := l.merged(c, r, records)
		if c.Layout.Shape == job.Latest { // which of two rows stays is for speedlayer's statement to say
			merged = staged
		}
		plain := l.plainly(c.Layout, q.postgres)
		rows[c.Layout.Shape] += len(plain)
		for _, other := range []struct {
			name string
			rows [][]string
		}{{"the version table", merged}, {"staging", staged}, {"DuckDB's one pass", l.once(c, c.Oracle, records)}} {
			if !alike(c.Layout, unsigned(c.Layout, plain), unsigned(c.Layout, other.rows)) {
				t.Errorf("%s%s\n%s differs (-plain PostgreSQL +other):\n%s", what, q.postgres, other.name, cmp.Diff(plain, other.rows))
			}
		}
	}
	if rows[job.Rows] < *cases || rows[job.Latest] < *cases/3 {
		t.Errorf("%d queries gave %v rows only: this proves little", *cases, rows)
	}
}

// rowRecords are random records; those of an upsert meet by their keys, and some are tombstones.
func rowRecords(r *rand.Rand, upsert bool) []record {
	var out []record
	for j := range pick(r, 0, 1, 5, 60, 200) {
		rec := randomRecord(r, int32(r.IntN(20)), int64(j))
		weird(r, []record{rec})
		rec["_key"], rec["_tombstone"] = []byte(pick(r, "/a", "/A", "k", "")), false
		if r.IntN(9) == 0 {
			rec["_timestamp"] = nil
		}
		if upsert && r.IntN(5) == 0 {
			for name := range rec {
				if !strings.HasPrefix(name, "_") {
					rec[name] = nil
				}
			}
			rec["_tombstone"] = true
		}
		out = append(out, rec)
	}
	return out
}
