package query

import "strings"

// fields returns the columns of source that the query names anywhere, in the order of the job file. A column that only
// a star passes on is not read by the aggregation. If names are assigned by position (FROM source AS s (a, b)), every
// column counts. There is at least one field, because a STRUCT cannot be empty.
func (c *compiler) fields() []string {
	used, stars, lists, positions := map[string]bool{}, false, false, false
	each(c.statement, func(n tree) bool {
		stars = stars || n.class() == classStar
		if len(n.texts("column_name_alias")) > 0 {
			lists, positions = true, positions || n.kind() == fromTable
		}
		for _, cte := range n.child("cte_map").list("map") {
			lists = lists || len(cte.child("value").texts("aliases")) > 0
		}
		for _, key := range []string{
			"column_names", "exclude_list", "qualified_exclude_list", "rename_list",
			"replace_list",
		} {
			mentions(n[key], used)
		}
		return true
	})
	if c.rows != nil && c.rows.latest() {
		used[tombstoneColumn] = true
	}
	if c.ties() || c.rows != nil {
		used[partitionColumn], used["_offset"], used["_timestamp"] = true, true, true
		used["_topic"] = used["_topic"] || len(c.spec.Source.Topics) > 1
	}
	var out []string
	for _, col := range c.source {
		if used[strings.ToLower(col.name)] || positions || (stars && lists) {
			out = append(out, col.name)
		}
	}
	if len(out) == 0 {
		out = []string{partitionColumn}
	}
	return out
}

// mentions collects every text below v in lower case. Some are not column names, which does no harm.
func mentions(v any, into map[string]bool) {
	switch v := v.(type) {
	case string:
		into[strings.ToLower(v)] = true
	case []any:
		for _, x := range v {
			mentions(x, into)
		}
	case map[string]any:
		for _, x := range v {
			mentions(x, into)
		}
	}
}
