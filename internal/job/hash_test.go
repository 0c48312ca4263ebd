package job_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

// A changed line here means that every such job replays at its next deploy after an upgrade of kappactl.
func TestHashesStayWhatTheyWere(t *testing.T) {
	paths, err := filepath.Glob("testdata/hash/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	var b strings.Builder
	for _, path := range paths {
		s, err := job.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\n", filepath.Base(path), s.Hash(1))
	}
	golden(t, "testdata/hash/hashes.golden", b.String())
}

const plain = `job: pageviews
source:
  topics: [a, b]
  columns: {url: text, n: int}
query: SELECT url, count(*) AS views FROM source GROUP BY url
serve: {view: pageviews}
`

func hashOf(t *testing.T, text string) string {
	t.Helper()
	return parse(t, text).Hash(1)
}

func parse(t *testing.T, text string) *job.Spec {
	t.Helper()
	s, err := job.Parse("job.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func replace(t *testing.T, text, from, to string) string {
	t.Helper()
	if !strings.Contains(text, from) {
		t.Fatalf("no %q in the text", from)
	}
	return strings.Replace(text, from, to, 1)
}

func TestWhatIsAppliedInPlaceDoesNotChangeTheHash(t *testing.T) {
	changes := map[string][2]string{
		"spelling of a type":     {"n: int}", "n: int4}"},
		"the field of its name":  {"n: int}", "n: {type: int, field: n}}"},
		"the path to its name":   {"n: int}", "n: {type: int, path: \"$['n']\"}}"},
		"defaults written out":   {"query:", "mode: kappa\nreplay: {start: earliest, workers: 3}\nquery:"},
		"order of topics":        {"[a, b]", "[b, a]"},
		"tombstones set aside":   {"  columns", "  on_error: {tombstones: dead_letter}\n  columns"},
		"limit of dead letters":  {"  columns", "  on_error: {dead_letter: {max: 5%}}\n  columns"},
		"white space and layout": {"query: SELECT url, count(*) AS views", "query: |\n  SELECT url ,\n    count( * )   AS views"},
		"comments":               {"query: SELECT", "query: |\n  -- views 'so far\n  /* a /* nested */ one */ SELECT"},
		"view columns":           {"{view: pageviews}", "{view: pageviews, columns: {twice: views * 2}, where: views > 0, indexes: [[url]], keep: 90d, grant: {select: [a]}}"},
		"name and team":          {"job: pageviews", "job: other\nteam: growth"},
		"checks, tests and ways": {"serve:", "checks: [{name: a, sql: SELECT true}]\ntests: [{name: a, given: [], expect: []}]\nlive: {every: 1s}\nbatch: {schedule: '@daily', keep_generations: 5}\narchive: {location: file:///a}\nready: {stable_for: 1s}\npromote: auto\nkeep_old: 1h\nserve:"},
	}
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			if got, want := hashOf(t, replace(t, plain, c[0], c[1])), hashOf(t, plain); got != want {
				t.Errorf("hash %s, want %s as before", got, want)
			}
		})
	}
}

func TestWhatChangesTheResultsChangesTheHash(t *testing.T) {
	changes := map[string][2]string{
		"mode":             {"query:", "mode: lambda\narchive: {location: file:///a}\nquery:"},
		"topics":           {"[a, b]", "[a]"},
		"format":           {"  columns", "  format: csv\n  columns"},
		"a column's type":  {"n: int}", "n: bigint}"},
		"a column's unit":  {"n: int}", "n: {type: timestamp, unit: ms}}"},
		"a column's field": {"n: int}", "n: {type: int, field: m}}"},
		"a column's path":  {"n: int}", "n: {type: int, path: $.p.n}}"},
		"another column":   {"n: int}", "n: int, m: int}"},
		"order of columns": {"{url: text, n: int}", "{n: int, url: text}"},
		"on_error":         {"  columns", "  on_error: fail\n  columns"},
		"tombstones":       {"  columns", "  on_error: {tombstones: skip}\n  columns"},
		"query":            {"count(*)", "sum(n)"},
		"distinct_max":     {"query:", "distinct_max: 10\nquery:"},
		"a literal":        {"FROM source", "FROM source WHERE url = 'a  b'"},
		"key":              {"{view: pageviews}", "{view: pageviews, key: [url]}"},
		"order_by":         {"{view: pageviews}", "{view: pageviews, key: [url], order_by: n}"},
		"start":            {"query:", "replay: {start: latest}\nquery:"},
		"offsets":          {"query:", "replay: {start: {offsets: {a/0: 1}}}\nquery:"},
	}
	seen := map[string]string{hashOf(t, plain): "the plain file"}
	for name, c := range changes {
		h := hashOf(t, replace(t, plain, c[0], c[1]))
		if other, twice := seen[h]; twice {
			t.Errorf("%s has the hash of %s", name, other)
		}
		seen[h] = name
	}
	if other, twice := seen[parse(t, plain).Hash(2)]; twice {
		t.Errorf("dialect 2 has the hash of %s", other)
	}
}
