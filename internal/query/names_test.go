package query

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestColumnsWithoutANameGetThatOfTheirExpression(t *testing.T) {
	for text, want := range map[string][]string{
		"SELECT lower(url), count(*), sum(small) / count(*), sum(small) / count(*) FROM source GROUP BY 1": {"lower_url", "count_star", "sum_small_count_star", "c4"},
		"SELECT url, upper(user_id), 1 FROM source":                                                        {"url", "upper_user_id", "1"},
	} {
		c, err := Compile(t.Context(), parseJob(t, "job.yaml", jobText(text)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.Layout.ViewNames()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if len(c.Warnings) == 0 || !strings.Contains(c.Warnings[0].Cause, `served as "`) {
			t.Errorf("%s: no warning: %v", text, c.Warnings)
		}
	}
}
