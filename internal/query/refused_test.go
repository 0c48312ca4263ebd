package query

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a golden file, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path) //nolint:gosec // a path of this test
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; run with -update when that is meant\n%s", path, diff)
	}
}

// sourceText is the source of the test jobs.
const sourceText = `source:
  topics: [pageviews]
  format: json
  columns:
    user_id: text
    url: text
    ts: timestamptz
    duration_ms: bigint
    d: double precision
    price: numeric(10,2)
    ok: boolean
    doc: jsonb
    id: uuid
    raw: bytea
    day: date
    local: timestamp
    clock: time
    small: smallint
    f: real
    "we ird": integer
`

// jobText is a job file with a query.
func jobText(query string) string {
	indented := "    " + strings.ReplaceAll(strings.TrimRight(query, "\n"), "\n", "\n    ")
	return "job: pageviews\n" + sourceText + "query: |\n" + indented + "\nserve:\n  view: public.pageviews_hourly\n"
}

// distinctMax is the limit of count(DISTINCT x) in the test jobs that have one.
const distinctMax = "distinct_max: 5\n"

type namedQuery struct{ name, text string }

// queriesOf reads a file of queries, each below a line "-- name".
func queriesOf(t *testing.T, file string) []namedQuery {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file)) //nolint:gosec // a path of this test
	if err != nil {
		t.Fatal(err)
	}
	var out []namedQuery
	for _, part := range strings.Split("\n"+string(text), "\n-- ")[1:] {
		name, query, _ := strings.Cut(part, "\n")
		out = append(out, namedQuery{name, query})
	}
	return out
}

func TestRefusedQueriesNameThePlaceTheCauseAndTheCure(t *testing.T) {
	var got strings.Builder
	for _, q := range queriesOf(t, "refused.sql") {
		spec := parseJob(t, "job.yaml", jobText("SELECT 1"))
		if strings.TrimSpace(q.text) == "" {
			spec.Query = q.text
		} else {
			spec = parseJob(t, "job.yaml", jobText(q.text))
		}
		fmt.Fprintf(&got, "== %s\n", q.name)
		for _, p := range problemsOf(t, spec) {
			if p.Cause == "" || p.Cure == "" || p.Dialect != job.DuckDBSQL || p.Path != "query" {
				t.Errorf("%s: incomplete problem %+v", q.name, p)
			}
			fmt.Fprintf(&got, "%s\n", p)
		}
	}
	golden(t, "refused.golden", got.String())
}
