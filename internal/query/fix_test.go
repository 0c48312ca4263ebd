package query

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFixWritesQueriesThatNeedNoFix: what Fix writes is served alike, without a warning.
func TestFixWritesQueriesThatNeedNoFix(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT url, count(*) AS n FROM source GROUP BY url":                                              "",
		"SELECT url, count(*) FROM source GROUP BY url ORDER BY url":                                      "SELECT url, count_star() AS count_star\nFROM \"source\"\nGROUP BY url",
		"SELECT s.* EXCLUDE (ts), 'a FROM b' AS x FROM source s":                                          "SELECT user_id, url, duration_ms, d, price, ok, doc, id, raw, \"day\", \"local\", clock, small, f, \"we ird\", 'a FROM b' AS x\nFROM \"source\" AS s",
		"SELECT DISTINCT ON (url) url, small FROM source ORDER BY 1":                                      "",
		"SELECT t.i AS i, s.url FROM source s, unnest([1, 2]) AS t (i)":                                   "SELECT i AS i, url\nFROM (SELECT *, unnest",
		"SELECT url, small FROM source QUALIFY row_number() OVER (PARTITION BY url ORDER BY ts DESC) = 1": "SELECT url AS url, \"first\"(small ORDER BY ts DESC NULLS LAST) AS small\nFROM \"source\"\nGROUP BY url",
	} {
		spec := parseJob(t, "job.yaml", jobText(query))
		fixed, err := Fix(t.Context(), spec)
		if want == "" && strings.Contains(query, "DISTINCT ON") {
			if err == nil {
				t.Errorf("%s is fixed to\n%s", query, fixed.Query)
			}
			continue
		}
		if err != nil || !strings.HasPrefix(fixed.Query, want) || want == "" && fixed.Query != "" {
			t.Errorf("%s is fixed to\n%s\n%v", query, fixed.Query, err)
			continue
		}
		if want == "" {
			continue
		}
		again := *spec
		again.Query = fixed.Query
		a, err := Compile(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Compile(t.Context(), &again)
		if err != nil {
			t.Errorf("%s\n%v", fixed.Query, err)
			continue
		}
		if diff := cmp.Diff(a.Layout, b.Layout); diff != "" || len(b.Warnings) > 0 {
			t.Errorf("%s\n%v\n%s", fixed.Query, b.Warnings, diff)
		}
	}
}
