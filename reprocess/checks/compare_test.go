package checks

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// view is a layout with a view of these columns; those with a star are keys.
func view(names ...string) job.Layout {
	l := job.Layout{Shape: job.Rollup}
	for _, name := range names {
		plain := strings.TrimSuffix(name, "*")
		l.View = append(l.View, job.ViewColumn{Name: plain, Key: plain != name})
	}
	return l
}

func mustCompare(t *testing.T, pool *pg.Pool, l job.Layout, a, b string, how job.DiffHow) Diff {
	t.Helper()
	d := Diff{A: "v1", B: "v2"}
	err := pool.ReadOnly(t.Context(), func(tx *pg.Tx) error {
		return compare(t.Context(), tx.Raw(), direct(tx.Raw()), side{layout: l, rows: a}, side{layout: l, rows: b}, how, &d)
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func counts(d Diff) [4]int64 { return [4]int64{d.OnlyA, d.OnlyB, d.Changed, d.Same} }

func TestKeysAreFoundAlsoWhereTheyAreNullAndExamplesNameWhatDiffers(t *testing.T) {
	pool, _ := pgtest.New(t)
	a := `VALUES (NULL, 1, 10, 'x'), ('/a', NULL, 20, 'y'), ('/b', 3, 30, 'z'), ('/gone', 4, 40, NULL)`
	b := `VALUES (NULL, 1, 10, 'x'), ('/a', NULL, 21, 'Y'), ('/b', 3, 30, 'z'), ('/new', NULL, 50, 'n')`
	named := func(rows string) string {
		return `SELECT url, day, n, "odd "" name" FROM (` + rows + `) AS v (url, day, n, "odd "" name")`
	}
	d := mustCompare(t, pool, view("url*", "day*", "n", `odd " name`), named(a), named(b), job.DiffHow{})
	if got := counts(d); got != [4]int64{1, 1, 1, 2} {
		t.Fatalf("only a, only b, changed, same: %v", got)
	}
	var lines []string
	for _, e := range d.Examples {
		lines = append(lines, e.Words(d.A, d.B))
	}
	want := []string{
		`["/a", null] n 20 → 21, odd " name "y" → "Y"`,
		`["/gone", 4] only in v1: {"n": 40, "day": 4, "url": "/gone", "odd \" name": null}`,
		`["/new", null] only in v2: {"n": 50, "day": null, "url": "/new", "odd \" name": "n"}`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	if d := mustCompare(t, pool, view("url*", "day*", "n", `odd " name`), named(a), named(b), job.DiffHow{Ignore: []string{"n"}, Where: `url < '/c'`}); counts(d) != [4]int64{0, 0, 1, 1} {
		t.Errorf("with where and ignore: %+v", d)
	}
}

func TestNumbersWithinTheToleranceAreTheSame(t *testing.T) {
	pool, _ := pgtest.New(t)
	for _, c := range []struct {
		typ, a, b string
		how       job.DiffHow
		same      bool
	}{
		{"double precision", "1.0000000001", "1", job.DiffHow{}, true},
		{"double precision", "1.00001", "1", job.DiffHow{}, false},
		{"double precision", "'NaN'", "'NaN'", job.DiffHow{}, true},
		{"double precision", "'NaN'", "1", job.DiffHow{}, false},
		{"double precision", "'Infinity'", "1e308", job.DiffHow{}, false},
		{"double precision", "1.7e308", "-1.7e308", job.DiffHow{}, false},
		{"double precision", "5e-324", "1e-320", job.DiffHow{}, false},
		{"double precision", "NULL", "1", job.DiffHow{}, false},
		{"double precision", "-100", "-100.9", job.DiffHow{Tolerance: 0.01}, true},
		{"double precision", "1.0000000001", "1", job.DiffHow{Tolerances: map[string]float64{"v": 0}}, false},
		{"numeric", "100", "100.9", job.DiffHow{}, false},
		{"numeric", "100", "100.9", job.DiffHow{Tolerances: map[string]float64{"v": 0.01}}, true},
		{"numeric", "0", "0.00", job.DiffHow{}, true},
		{"bigint", "-9223372036854775808", "-9223372036854775807", job.DiffHow{Tolerance: 0.01}, true},
		{"bigint", "-9223372036854775808", "9223372036854775807", job.DiffHow{Tolerance: 0.01}, false},
		{"bigint", "0", "1", job.DiffHow{Tolerance: 0.01}, false},
		{"json", `'{"a": 1}'`, `'{"a": 1}'`, job.DiffHow{}, true},
		{"jsonb", `'{"a": 1.0}'`, `'{"a": 1.0}'`, job.DiffHow{Tolerance: 0.01}, true},
		{"text", "'a'", "'b'", job.DiffHow{Tolerance: 1}, false},
		{"bigint[]", "'{1,NULL}'", "'{1,NULL}'", job.DiffHow{}, true},
	} {
		row := func(v string) string { return fmt.Sprintf("SELECT 1 AS k, (%s)::%s AS v", v, c.typ) }
		d := mustCompare(t, pool, view("k*", "v"), row(c.a), row(c.b), c.how)
		if want := map[bool][4]int64{true: {0, 0, 0, 1}, false: {0, 0, 1, 0}}[c.same]; counts(d) != want {
			t.Errorf("%s: %s and %s with %+v: %v", c.typ, c.a, c.b, c.how, counts(d))
		}
	}
}

// TestTheComparisonCountsWhatALoopCounts compares random tables, some of whose keys are NULL, with a loop over maps.
func TestTheComparisonCountsWhatALoopCounts(t *testing.T) {
	pool, _ := pgtest.New(t)
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	for range 15 {
		var sides [2]map[string]int
		var texts [2]string
		for i := range sides {
			sides[i] = map[string]int{}
			rows := []string{"SELECT NULL::text AS a, 0 AS b, 0 AS v WHERE false"}
			for range r.IntN(40) {
				a, b, v := []string{"NULL", "'x'", "''", "'null'"}[r.IntN(4)], r.IntN(4), r.IntN(3)
				key := fmt.Sprint(a, b)
				if _, twice := sides[i][key]; !twice {
					sides[i][key] = v
					rows = append(rows, fmt.Sprintf("SELECT %s, %d, %d", a, b, v))
				}
			}
			texts[i] = strings.Join(rows, " UNION ALL ")
		}
		var want [4]int64
		for k, v := range sides[0] {
			switch w, both := sides[1][k]; {
			case !both:
				want[0]++
			case v != w:
				want[2]++
			default:
				want[3]++
			}
		}
		for k := range sides[1] {
			if _, both := sides[0][k]; !both {
				want[1]++
			}
		}
		d := mustCompare(t, pool, view("a*", "b*", "v"), texts[0], texts[1], job.DiffHow{})
		if counts(d) != want || len(d.Examples) != int(min(10, want[0]+want[1]+want[2])) {
			t.Fatalf("seed %d: %v with %d examples, want %v\n%s\n%s", seed, counts(d), len(d.Examples), want, texts[0], texts[1])
		}
	}
}

func TestAppendedRowsAreComparedByTheirPlaceInTheLog(t *testing.T) {
	pool, _ := pgtest.New(t)
	l := job.Layout{Shape: job.Rows, Keys: []job.KeyColumn{{Name: job.TopicColumn, Type: `text COLLATE "C"`}, {Name: job.OffsetColumn, Type: "bigint"}}, View: []job.ViewColumn{{Name: "v", Type: "text", Finish: `s."v"`}}}
	d := mustCompare(t, pool, l, `SELECT 't' AS _topic, n AS _offset, 'same' AS v FROM generate_series(1, 4) n`, `SELECT 't' AS _topic, n AS _offset, 'same' AS v FROM generate_series(2, 6) n`, job.DiffHow{})
	if counts(d) != [4]int64{1, 2, 0, 3} {
		t.Errorf("%v", counts(d))
	}
}

// TestADomainIsComparedAsWhatItIsOver: PostgreSQL describes a column of a domain as one of the type under it.
func TestADomainIsComparedAsWhatItIsOver(t *testing.T) {
	pool, _ := pgtest.New(t)
	for _, sql := range []string{`CREATE DOMAIN code AS text`, `CREATE DOMAIN money_ AS numeric`, `CREATE DOMAIN doc AS json`} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	rows := func(amount string) string {
		return `SELECT c::code AS c, ` + amount + `::money_ AS amount, '{"a": 1}'::doc AS d FROM (VALUES ('x'), (NULL)) AS v (c)`
	}
	d := mustCompare(t, pool, view("c*", "amount", "d"), rows("100"), rows("100.9"), job.DiffHow{Tolerance: 0.01})
	if counts(d) != [4]int64{0, 0, 0, 2} {
		t.Errorf("within the tolerance: %v", counts(d))
	}
	d = mustCompare(t, pool, view("c*", "amount", "d"), rows("100"), rows("100.9"), job.DiffHow{})
	if counts(d) != [4]int64{0, 0, 2, 0} || len(d.Examples) != 2 || d.Examples[0].Words("v1", "v2") != `["x"] amount 100 → 100.9` {
		t.Errorf("without: %v %+v", counts(d), d.Examples)
	}
}

func TestVersionsWithOtherKeysAndUnknownColumnsAreRefused(t *testing.T) {
	if _, _, err := commonColumns(view("a*", "b"), view("a*", "b*")); err == nil {
		t.Error("other keys are compared")
	}
	if err := knows([]string{"views"}, job.DiffHow{Ignore: []string{"view"}}); err == nil {
		t.Error("an unknown column is ignored")
	}
}

func TestADiffIsJudgedByTheLimitOfEachKind(t *testing.T) {
	some, none := 0.1, 0.0
	d := Diff{A: "v1", B: "v2", OnlyA: 2, OnlyB: 3, Changed: 5, Same: 90}
	for _, c := range []struct {
		limit job.DiffLimit
		want  Outcome
	}{
		{job.DiffLimit{MaxChanged: 0.1}, Pass},
		{job.DiffLimit{MaxChanged: 0.09}, Fail},
		{job.DiffLimit{MaxChanged: 0.05, MaxMissing: &some, MaxExtra: &some}, Pass},
		{job.DiffLimit{MaxChanged: 0.04, MaxMissing: &some, MaxExtra: &some}, Fail},
		{job.DiffLimit{MaxChanged: 1, MaxMissing: &none}, Fail},
		{job.DiffLimit{MaxChanged: 1, MaxExtra: &none}, Fail},
	} {
		if got, text := judge(d, c.limit); got != c.want {
			t.Errorf("%+v: %s: %s", c.limit, got, text)
		}
	}
	if got, _ := judge(Diff{}, job.DiffLimit{}); got != Pass {
		t.Errorf("nothing and nothing: %s", got)
	}
	if _, text := judge(d, job.DiffLimit{MaxChanged: 0.01, MaxExtra: &none}); text.Text() != "5 keys changed, 2 only in v1 (7% of 100, allowed 1%); 3 only in v2 (3%, allowed 0%)" {
		t.Error(text)
	}
}

func TestCountsOfADiffHaveCommasBetweenTheirThousands(t *testing.T) {
	d := Diff{A: "v1", B: "v2", OnlyA: 5427, Same: 5453}
	if _, text := judge(d, job.DiffLimit{MaxChanged: 0.01}); text.Text() != "0 keys changed, 5,427 only in v1, 0 only in v2 (49.9% of 10,880, allowed 1%)" {
		t.Error(text)
	}
}
