package trial_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/mergecheck"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/internal/trial"
	"github.com/kappactl/kappactl/serving"
	"github.com/kappactl/kappactl/speedlayer"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const head = `
job: hits
source:
  topics: [hits]
  columns: {url: text, ts: timestamptz, ms: bigint, price: "numeric(8,2)", tags: jsonb}
query: |
  SELECT url, date_trunc('hour', ts) AS hour, count(*) AS views, sum(ms) AS total, avg(ms) AS mean, sum(price) AS paid, max(ts) AS newest
  FROM source WHERE url IS NOT NULL GROUP BY url, hour
serve:
  view: public.hits
  columns: {paid_per_view: "round(paid / views, 2)"}
`

const given = `given: ['{"url":"/a","ts":"2026-01-01T10:05:00Z","ms":5,"price":1.10}', '{"url":"/a","ts":"2026-01-01T10:06:00Z","ms":6,"price":2.20}', '{"url":"/b","ts":"2026-01-01T11:00:00Z"}', '{"url":1}', '{"url":null,"ts":"2026-01-01T10:05:00Z"}']`

// both runs the job's tests in the engine and through PostgreSQL.
func both(t *testing.T, text string, check func(t *testing.T, r []trial.Result)) {
	t.Helper()
	spec, err := job.Parse("job.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := query.Compile(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	pool, _ := pgtest.New(t)
	merge := mergecheck.Deps{Pool: pool, Statements: speedlayer.Store{}, Views: serving.New(serving.Config{}), StagingColumn: speedlayer.StagingColumn}
	for engine, deps := range map[string]*mergecheck.Deps{trial.DuckDB: nil, trial.PostgreSQL: &merge} {
		t.Run(engine, func(t *testing.T) {
			results, err := trial.Run(t.Context(), spec, c, deps)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				if r.Engine != engine {
					t.Errorf("%s ran in %s", r.Name, r.Engine)
				}
			}
			check(t, results)
		})
	}
}

func TestRowsAreComparedAsValuesOfTheirTypes(t *testing.T) {
	both(t, head+`
tests:
  - name: every spelling of a value is that value
    `+given+`
    expect:
      - {url: /b, hour: "2026-01-01 11:00:00+00", views: 1, total: null, mean: null, paid: null}
      - {url: /a, hour: "2026-01-01T11:00:00+01:00", views: 2, total: 11, mean: 5.5, paid: 3.3, newest: "2026-01-01T10:06:00Z", paid_per_view: 1.65}
`, func(t *testing.T, results []trial.Result) {
		r := results[0]
		if !r.OK || r.Rows != 2 || r.Error != "" {
			t.Errorf("%+v", r)
		}
		if len(r.DeadLetters) != 1 || r.DeadLetters[0].Record != 4 || r.DeadLetters[0].Reason != "wrong_type" {
			t.Errorf("%+v", r.DeadLetters)
		}
		if unseen := r.Unseen == "serve.columns.paid_per_view"; unseen != (r.Engine == trial.DuckDB) {
			t.Errorf("%s: unseen %q", r.Engine, r.Unseen)
		}
	})
}

func TestAHistogramIsExpectedAsAMapping(t *testing.T) {
	text := strings.NewReplacer("max(ts) AS newest", "histogram(ms) AS ms", "query: |", "distinct_max: 3\nquery: |").Replace(head) + `tests:
  - {name: right, ` + given + `, expect: [{url: /a, ms: {"6": 1, "5": 1}}, {url: /b, ms: null}]}
  - {name: wrong, ` + given + `, expect: [{url: /a, ms: {"5": 2}}, {url: /b}]}
`
	both(t, text, func(t *testing.T, r []trial.Result) {
		if !r[0].OK || r[1].OK || len(r[1].Differences) != 1 {
			t.Errorf("%+v", r)
		}
	})
}

func TestDifferencesAreChangedMissingAndUnexpectedRows(t *testing.T) {
	both(t, head+`
tests:
  - name: wrong
    `+given+`
    expect: [{url: /a, hour: "2026-01-01T10:00:00Z", views: 3, total: 11}, {url: /c, views: 1}]
  - name: right
    given: []
    expect: []
`, func(t *testing.T, results []trial.Result) {
		r := results[0]
		var kinds []string
		for _, d := range r.Differences {
			kinds = append(kinds, string(d.Kind)+" "+*d.Row["url"])
		}
		if diff := cmp.Diff([]string{"changed /a", "missing /c", "unexpected /b"}, kinds); diff != "" || r.OK {
			t.Error(diff)
		}
		want, got := "3", "2"
		if diff := cmp.Diff(map[string]trial.Values{"views": {Want: &want, Got: &got}}, r.Differences[0].Columns); diff != "" {
			t.Error(diff)
		}
		if !results[1].OK {
			t.Errorf("%+v", results[1])
		}
	})
}

func TestWhatATestGetsWrongIsItsOwnFailure(t *testing.T) {
	both(t, head+`
tests:
  - {name: no such column, given: [], expect: [{uurl: /a}]}
  - {name: no such value, given: [], expect: [{views: many}]}
`, func(t *testing.T, results []trial.Result) {
		for i, want := range []string{`expect[0] names column "uurl", which the result does not have; its columns are url, hour, views`, `expect[0]: many is not a value of column "views" (bigint)`} {
			if r := results[i]; r.OK || !strings.HasPrefix(r.Error, want) {
				t.Errorf("%q, want %q", r.Error, want)
			}
		}
	})
}

func TestAQueryThatFailsOnAGivenRecordFailsTheTest(t *testing.T) {
	text := strings.Replace(head, "WHERE url IS NOT NULL", "WHERE CAST(url AS INTEGER) > 0", 1)
	both(t, text+`
tests:
  - {name: fails, `+given+`, expect: []}
`, func(t *testing.T, results []trial.Result) {
		if r := results[0]; r.OK || !strings.Contains(r.Error, "DuckDB SQL") || !strings.Contains(r.Error, "/a") {
			t.Errorf("%+v", r)
		}
	})
}

// TestATestStatesDeadLetters: bad records are set aside as in production, and a test says which.
func TestATestStatesDeadLetters(t *testing.T) {
	const job = `
job: hits
source: {topics: [hits], columns: {url: text, a: double precision, b: double precision, n: text}}
query: "SELECT url, {x: a / b} AS r, CAST(n AS INTEGER) AS n FROM source"
serve: {view: public.hits}
tests:
  - name: stated
    given: ['{"url":"/a","a":1,"b":2,"n":"7"}', '{"url":"/b","a":1,"b":0,"n":"1"}', '{"url":"/c","a":1,"b":1,"n":"x"}', '{"url":1}']
    expect: [{url: /a, n: 7}]
    dead_letters: LETTERS
`
	for letters, want := range map[string]string{
		"[2, 3, 4]": "", "[2, 3]": "record 4 of given becomes a dead letter", "[1, 2, 3, 4]": "dead_letters lists record 1 of given",
	} {
		both(t, strings.Replace(job, "LETTERS", letters, 1), func(t *testing.T, results []trial.Result) {
			if r := results[0]; r.OK != (want == "") || !strings.Contains(r.Error, want) || len(r.DeadLetters) != 3 {
				t.Errorf("%s: %+v", letters, r)
			}
		})
	}
}

func TestTheConditionOfTheViewIsSeenByPostgreSQLOnly(t *testing.T) {
	both(t, head+`  where: views > 1
tests:
  - {name: hidden, `+given+`, expect: [{url: /a, views: 2}]}
`, func(t *testing.T, results []trial.Result) {
		r := results[0]
		if !r.OK || (r.Rows == 1) != (r.Engine == trial.PostgreSQL) || (r.Unseen == "serve.where") != (r.Engine == trial.DuckDB) {
			t.Errorf("%+v", r)
		}
	})
}

func TestSQLThatPostgreSQLRefusesFailsTheTestThere(t *testing.T) {
	both(t, strings.Replace(head, "round(paid / views, 2)", "no_such(paid)", 1)+`
tests:
  - {name: refused, `+given+`, expect: []}
`, func(t *testing.T, results []trial.Result) {
		if r := results[0]; r.Engine == trial.PostgreSQL && !strings.Contains(r.Error, "PostgreSQL SQL") || r.OK {
			t.Errorf("%+v", r)
		}
	})
}

func TestARecordThatStopsTheJobFailsTheTest(t *testing.T) {
	both(t, strings.Replace(head, "query: |", "  on_error: fail\nquery: |", 1)+`
tests:
  - {name: stops, `+given+`, expect: []}
`, func(t *testing.T, results []trial.Result) {
		if r := results[0]; r.OK || !strings.Contains(r.Error, "record 4") {
			t.Errorf("%+v", r)
		}
	})
}

func TestRowsOfTheSameValuesAreMatchedOneToOne(t *testing.T) {
	both(t, head+`
tests:
  - name: partial rows
    `+given+`
    expect: [{views: 1}, {url: /b}]
`, func(t *testing.T, results []trial.Result) {
		// {views: 1} fits /b only, and /b is what {url: /b} needs: one of the two is missing.
		if r := results[0]; r.OK || len(r.Differences) != 2 {
			t.Errorf("%+v", r)
		}
	})
}
