package query

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestFiltersOverTheInputAreApplied compares with counts known beforehand: both PARTIAL and the oracle run in the same
// engine, so that comparing them shows no fault of its scan.
func TestFiltersOverTheInputAreApplied(t *testing.T) {
	s := open(t, Config{})
	for where, want := range map[string]string{
		"a >= 500":                           "500",
		"a > 500 AND a < 510":                "9",
		"a = 7":                              "1",
		"a <> 7":                             "999",
		"a BETWEEN 1 AND 3":                  "3",
		"a IN (1, 2, 3)":                     "3",
		"a + 0 >= 500":                       "500",
		"a IS NULL":                          "0",
		"a IS NOT NULL":                      "1000",
		"b LIKE '%6ns' AND a < 100":          "10",
		"a < 10 OR a >= 990":                 "20",
		"a >= (SELECT 995)":                  "5",
		"a IN (SELECT unnest([1, 2, 5000]))": "2",
	} {
		got := mustRows(t, s, "SELECT CAST(count(*) AS VARCHAR) FROM source WHERE "+where, numbers(t, memory.DefaultAllocator, 1, 1000, 10))
		if got[0][0] != want {
			t.Errorf("WHERE %s: %s records, want %s", where, got[0][0], want)
		}
	}
	got := mustRows(t, s, "SELECT CAST(max(a) AS VARCHAR) FROM source WHERE a < 42", numbers(t, memory.DefaultAllocator, 1, 1000, 10))
	if got[0][0] != "41" {
		t.Errorf("max below 42: %s", got[0][0])
	}
}
