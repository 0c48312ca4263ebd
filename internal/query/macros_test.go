package query

import (
	"strings"
	"testing"
)

// TestNoFunctionHidesAnUnnest: whatever makes several rows of one is seen, by any of its names, and its rows are told apart.
func TestNoFunctionHidesAnUnnest(t *testing.T) {
	s := open(t, Config{})
	engine, err := s.askFunctions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]string{
		"regexp_split_to_table": "Regexp_Split_To_Table(url, '/')", "generate_subscripts": "generate_subscripts([url, 'x'], 1)",
		"unlist": "UNLIST([url, 'x'])", "unnest": "unnest([url, 'x'])",
	}
	for _, m := range engine.unnesting {
		if calls[m.name] == "" && len(m.parameters) < 4 { // histogram_values is a table macro: it reads other relations
			t.Errorf("the engine has a macro %s(%s) that unnests: try it here", m.name, strings.Join(m.parameters, ", "))
		}
	}
	for name, call := range calls {
		for _, text := range []string{
			"SELECT url, " + call + " AS w FROM source",
			"SELECT url, w FROM (SELECT url, " + call + " AS w FROM source)",
		} {
			c, err := Compile(t.Context(), parseJob(t, "job.yaml", jobText(text)))
			switch {
			case err != nil:
				t.Errorf("%s: %v", name, err)
			case !c.rows.unnests || !strings.Contains(c.Land(), "row_number"):
				t.Errorf("%s: the rows of a record are not told apart: %s", name, c.Land())
			}
			keyed, err := Compile(t.Context(), parseJob(t, "job.yaml", jobText(text)+"  key: [url]\n"))
			if err != nil || !strings.Contains(keyed.Partial, "_kappactl_deleted AND ") {
				t.Errorf("%s with serve.key: a tombstone does not pass: %v", name, err)
			}
		}
	}
}
