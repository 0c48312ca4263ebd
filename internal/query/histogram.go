package query

import "fmt"

// histogramForm returns the form of histogram(x) with at most limit different values: a table of counts by the value's
// text. Each part has the full counts of the least limit + 1 values of the union, so that parts can be cut to that
// many. If there are more than limit values the histogram is NULL, never incomplete.
func histogramForm(limit int, duck string) *form {
	text := "CAST(" + oneZero("x", duck) + " AS VARCHAR)"
	counts := "histogram(" + text + ") FILTER (WHERE x IS NOT NULL)"
	least := fmt.Sprintf("map_from_entries(list_slice(list_sort(map_entries(%s)), 1, %d))", counts, limit+1)
	return &form{
		stored: fmt.Sprintf("counts of up to %d values", limit), typ: "jsonb", duck: "MAP(VARCHAR, UBIGINT)",
		finish: fmt.Sprintf("CASE WHEN (SELECT count(*) FROM jsonb_object_keys({__counts})) BETWEEN 1 AND %d THEN "+
			"{__counts} END", limit),
		oracle: fmt.Sprintf("CASE WHEN count(DISTINCT %s) BETWEEN 1 AND %d THEN %s END", text, limit, counts),
		parts:  []part{{suffix: "__counts", value: "coalesce(" + least + ", MAP {})", merge: mergeCounts, limit: limit + 1}},
	}
}
