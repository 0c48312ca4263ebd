package job_test

import (
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

func TestAConditionStaysInItsParentheses(t *testing.T) {
	for text, want := range map[string]string{
		"n > 0": "", "hour < date_trunc('hour', now())": "", "a[(1)] = ANY (ARRAY[1, 2]) -- why": "", "x = ';)' /* ;) */ AND \"a)\" > $$)$$": "",
		`x = E'\')' OR y = 'it''s)'`: "", "(n > 0)": "",
		"true); DROP TABLE t; SELECT (true": "it closes a parenthesis", "true; SELECT 1": "no semicolon", "true;": "no semicolon",
		"true) OR (true": "it closes a parenthesis", "true)": "it closes a parenthesis", "(true": "is not closed", "f((1)": "is not closed",
		"x = 'a": "does not end", "x = 'a''": "does not end", "true /* why": "does not end", "x = $a$ $$": "does not end", `"a = 1`: "does not end",
		"": "no condition", "-- nothing": "no condition",
	} {
		switch err := job.OneCondition(text); {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
