package query

import "fmt"

// histogramForm is histogram(x) of at most limit different values: a table of counts by the value's text. Of the least
// limit + 1 values of a union every part has the whole count, so parts may be cut to that many; one more than limit says that
// there are more, and the histogram is NULL then, never incomplete.
func histogramForm(limit int) *form {
	const counts = "histogram(CAST(x AS VARCHAR)) FILTER (WHERE x IS NOT NULL)"
	least := fmt.Sprintf("map_from_entries(list_slice(list_sort(map_entries(%s)), 1, %d))", counts, limit+1)
	return &form{
		stored: fmt.Sprintf("counts of up to %d values", limit), typ: "jsonb", duck: "MAP(VARCHAR, UBIGINT)",
		finish: fmt.Sprintf("CASE WHEN (SELECT count(*) FROM jsonb_object_keys({__counts})) BETWEEN 1 AND %d THEN {__counts} END", limit),
		oracle: fmt.Sprintf("CASE WHEN count(DISTINCT CAST(x AS VARCHAR)) BETWEEN 1 AND %d THEN %s END", limit, counts),
		parts:  []part{{suffix: "__counts", value: "coalesce(" + least + ", MAP {})", merge: mergeCounts, limit: limit + 1}},
	}
}
