package mergecheck_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/mergecheck"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/serving"
	"github.com/kappactl/kappactl/speedlayer"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func deps(t *testing.T) mergecheck.Deps {
	t.Helper()
	pool, _ := pgtest.New(t)
	return mergecheck.Deps{Pool: pool, Statements: speedlayer.Store{}, Views: serving.New(serving.Config{}), StagingColumn: speedlayer.StagingColumn}
}

func compile(t *testing.T, text string) (*job.Spec, *query.Compiled) {
	t.Helper()
	spec, err := job.Parse("job.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := query.Compile(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return spec, c
}

const everyType = `
job: everything
source:
  topics: [a, b]
  columns: {b: boolean, s: smallint, i: integer, l: bigint, r: real, d: double precision, n: "numeric(10,2)", t: text, y: bytea, a: date,
    m: time, p: timestamp, z: timestamptz, ms: {type: timestamptz, unit: ms}, u: uuid, j: jsonb}
query: |
  SELECT b, t, date_trunc('day', z) AS day, u, count(*) AS c, count(s) AS cs, sum(l) AS l, avg(i) AS i, avg(d) AS d, sum(r) AS r, sum(n) AS n,
         min(a) AS a, max(p) AS p, max(ms) AS ms, min(t) AS lowest, max(m) AS m
  FROM source WHERE l IS NOT NULL OR y IS NULL GROUP BY ALL
serve: {view: public.everything, where: c > 1, columns: {twice: c * 2}}
`

func TestTheLawHoldsForEveryExampleAndType(t *testing.T) {
	d := deps(t)
	texts := map[string]string{"every type": everyType, "no group": strings.Replace(everyType, "SELECT b, t, date_trunc('day', z) AS day, u, count", "SELECT count", 1)}
	texts["no group"] = strings.Replace(texts["no group"], " GROUP BY ALL", "", 1)
	beforeSelect, _, _ := strings.Cut(everyType, "  SELECT")
	texts["above the aggregation"] = beforeSelect + `  SELECT date_trunc('day', z) AS day, sum(i) / count(*) AS mean, round(avg(i), 1) AS about,
    round(avg(d), 2) AS loose, coalesce(sum(n), 0) AS total, max(p) - min(p) AS span, concat(t, '!') AS shout
  FROM source GROUP BY date_trunc('day', z), b, t HAVING count(*) > 1 AND sum(i) IS NOT NULL ORDER BY mean DESC, count(*) LIMIT 20
serve: {view: public.everything}
`
	texts["distinct"] = beforeSelect + "  SELECT DISTINCT b, t FROM source ORDER BY t\nserve: {view: public.everything}\n"
	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(paths) < 5 {
		t.Fatal(paths, err)
	}
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(p)] = string(text)
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			spec, c := compile(t, text)
			records, err := mergecheck.Generate(spec, 800, 7)
			if err != nil {
				t.Fatal(err)
			}
			report, err := mergecheck.Check(t.Context(), d, spec, c, records, mergecheck.Options{Rounds: 6, Seed: 42})
			if err != nil {
				t.Fatal(err)
			}
			if !report.Passed || report.Checks != nil || report.Rows == 0 || report.Rejected > report.Records/10 || report.Seed != 42 || report.Rounds != 6 {
				t.Errorf("%+v %s", report, cmp.Diff(nil, report.Failure))
			}
		})
	}
}

func TestALawThatIsBrokenIsFoundWithItsKeysAndTheSameSeedFindsTheSame(t *testing.T) {
	d := deps(t)
	spec, c := compile(t, everyType)
	for i := range c.Layout.States {
		c.Layout.States[i].Aggregate = strings.ReplaceAll(c.Layout.States[i].Aggregate, "sum(", "max(")
	}
	records, err := mergecheck.Generate(spec, 300, 7)
	if err != nil {
		t.Fatal(err)
	}
	var failures []*mergecheck.Failure
	for range 2 {
		report, err := mergecheck.Check(t.Context(), d, spec, c, records, mergecheck.Options{Rounds: 5, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		f := report.Failure
		if report.Passed || f == nil || len(f.Differences) == 0 || len(f.Differences) > 10 || len(f.Differences[0].Key) != 4 || f.Differences[0].Want == nil {
			t.Fatalf("%+v", report)
		}
		failures = append(failures, f)
	}
	if diff := cmp.Diff(failures[0], failures[1]); diff != "" {
		t.Error(diff)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	d := deps(t)
	spec, c := compile(t, everyType)
	records, err := mergecheck.Generate(spec, 50, 1)
	if err != nil {
		t.Fatal(err)
	}
	before := relations(t, d)
	if _, err := mergecheck.Check(t.Context(), d, spec, c, records, mergecheck.Options{Rounds: 2}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, relations(t, d)); diff != "" {
		t.Error(diff)
	}
}

func relations(t *testing.T, d mergecheck.Deps) string {
	t.Helper()
	var names string
	if err := d.Pool.QueryRow(t.Context(), "SELECT string_agg(relnamespace::regnamespace || '.' || relname, ' ' ORDER BY oid) FROM pg_class WHERE relnamespace::regnamespace::text NOT LIKE 'pg_toast%'").Scan(&names); err != nil {
		t.Fatal(err)
	}
	return names
}

// TestRecordsThatFailAreListedAndTheOthersJudged: as in production they become dead letters, whether the decoder, the query or
// PostgreSQL refuses them, and the merge check runs on the rest.
func TestRecordsThatFailAreListedAndTheOthersJudged(t *testing.T) {
	spec, c := compile(t, `
job: fails
source: {topics: [t], columns: {k: text, n: text, c: integer}}
query: |
  SELECT k || chr(c) AS key, sum(CAST(n AS INTEGER)) AS n
  FROM source GROUP BY 1
serve: {view: public.fails}
`)
	var records []*kgo.Record
	for i, value := range []string{
		`{"k":"a","n":"1","c":65}`, `{"k":"a","n":"x","c":65}`, `{"k":"a","n":"2","c":0}`, `{"k":1}`, `{"k":"a","n":"3","c":65}`,
	} {
		records = append(records, &kgo.Record{Topic: "t", Offset: int64(i), Value: []byte(value)})
	}
	report, err := mergecheck.Check(t.Context(), deps(t), spec, c, records, mergecheck.Options{Rounds: 2})
	if err != nil || !report.Passed || report.Rows != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	var got []string
	for _, l := range report.DeadLetters {
		got = append(got, fmt.Sprintf("%d %s %s", l.Offset, l.Reason, l.Detail))
	}
	if len(got) != 3 || report.Rejected != 3 {
		t.Fatalf("%d: %q", report.Rejected, got)
	}
	for i, want := range []string{"3 wrong_type", `1 query_error column "n": Conversion Error: Could not convert string 'x' to INT32`, "2 query_error PostgreSQL: invalid byte sequence"} {
		if !strings.HasPrefix(got[i], want) || strings.Contains(got[i], "SELECT") {
			t.Errorf("%q, want %q", got[i], want)
		}
	}
}

const (
	appended = `
job: hits
source: {topics: [a, b], columns: {k: text, n: bigint, ts: timestamptz}}
query: SELECT k, unnest([n, n, n + 1]) AS n, ts FROM source WHERE n > 0
serve: {view: public.hits, keep: 1h}
`
	latest = `
job: accounts
source: {topics: [a, b], columns: {k: text, n: bigint, ts: timestamptz}}
query: SELECT coalesce(k, decode(_key)) AS k, n, ts FROM source WHERE n <> 3
serve: {view: public.accounts, key: [k]}
`
)

func TestTheLawHoldsForRowsAndForTheLatestOfAKey(t *testing.T) {
	d := deps(t)
	for name, text := range map[string]string{
		"appended": appended, "latest": latest, "latest by time": strings.Replace(latest, "[k]}", "[k], order_by: ts}", 1),
		"latest by number, key of the record": strings.Replace(strings.Replace(latest, "[k]}", "[k], order_by: n}", 1), "coalesce(k, decode(_key))", "decode(_key)", 1),
	} {
		t.Run(name, func(t *testing.T) {
			spec, c := compile(t, text)
			records, err := mergecheck.Generate(spec, 1000, 7)
			if err != nil {
				t.Fatal(err)
			}
			report, err := mergecheck.Check(t.Context(), d, spec, c, records, mergecheck.Options{Rounds: 5, Seed: 42})
			if err != nil {
				t.Fatal(err)
			}
			// A number as the order makes dead letters of tombstones and of records without one.
			if !report.Passed || report.Rows < 5 || report.Rejected > report.Records/7 {
				t.Errorf("%+v %s", report, cmp.Diff(nil, report.Failure))
			}
		})
	}
}

// oldestWins merges an upsert the wrong way round.
type oldestWins struct{ speedlayer.Store }

func (o oldestWins) Merge(v job.Version) string {
	return strings.ReplaceAll(o.Store.Merge(v), ") > (", ") < (")
}

// onceMore writes every row of an append into staging again.
type onceMore struct{ speedlayer.Store }

func (o onceMore) Rebuild(v job.Version) []string {
	twice := "INSERT INTO pg_temp." + v.Staging() + " SELECT * FROM pg_temp." + v.Staging() + " WHERE _n = 2 LIMIT 1"
	shifted := "UPDATE pg_temp." + v.Staging() + " SET _n = 9 WHERE ctid = (SELECT max(ctid) FROM pg_temp." + v.Staging() + ")"
	return append([]string{twice, shifted}, o.Store.Rebuild(v)...)
}

func TestABrokenLawOfRowsIsFoundWithTheirPlace(t *testing.T) {
	for text, s := range map[string]mergecheck.Statements{latest: oldestWins{}, appended: onceMore{}} {
		d := deps(t)
		d.Statements = s
		spec, c := compile(t, text)
		records, err := mergecheck.Generate(spec, 300, 7)
		if err != nil {
			t.Fatal(err)
		}
		report, err := mergecheck.Check(t.Context(), d, spec, c, records, mergecheck.Options{Rounds: 5, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		if report.Passed || report.Failure == nil || len(report.Failure.Differences) == 0 {
			t.Fatalf("%+v", report)
		}
		if d := report.Failure.Differences[0]; text == appended && (*d.Key["_n"] != "9" || d.Want != nil || report.Failure.How != "replay") {
			t.Errorf("%+v", report.Failure)
		}
	}
}
