package query

import (
	"fmt"
	"slices"
	"strings"
)

// refusedBind turns a binding error of DuckDB into a problem.
func (c *compiler) refusedBind(e *engineError) {
	cause, rest, _ := strings.Cut(e.message, "\n")
	cause = strings.TrimSuffix(strings.TrimSpace(cause), "!")
	cause = strings.TrimSuffix(cause, ". You might need to add explicit type casts.")
	cure := "correct the SQL; the query is DuckDB's dialect"
	switch e.subtype {
	case "COLUMN_NOT_FOUND":
		cause = fmt.Sprintf("no column named %q", e.name)
		cure = "declare it under source.columns"
		if _, near, ok := strings.Cut(rest, "Candidate bindings: "); ok {
			cure += "; similar names: " + strings.TrimSpace(near)
		}
	case "NO_MATCHING_FUNCTION":
		cure = "cast the argument to a type that the function takes"
	}
	switch {
	case streamWindow(strings.ToLower(e.name)):
		cause, cure = "window functions of other streaming SQL are not supported", cureWindow
	case strings.Contains(e.message, "must appear in the GROUP BY clause"):
		cure = "add the column to GROUP BY, or aggregate it: min(x)"
	case strings.Contains(e.message, "does not exist") && strings.Contains(e.message, "Function"):
		cure = "use a function of DuckDB"
		if _, near, ok := strings.Cut(e.message, "Did you mean "); ok {
			cure = "did you mean " + strings.TrimSpace(near)
		}
		if ours := foreignFunction(e.name); ours != "" {
			cure = "write " + ours
		}
	}
	c.refused.add(e.at, cause, cure)
}

// judgePlan refuses a bound plan that calls something non-deterministic. In the plan, macros are expanded and names
// resolved, so it shows calls that the parse tree hides.
func (c *compiler) judgePlan(plan tree) {
	each(plan, func(n tree) bool {
		if strings.HasPrefix(n.kind(), "LOGICAL_") {
			c.judgeOperator(n)
		}
		switch n.text("expression_class") {
		case "BOUND_FUNCTION":
			c.judgeFunction(n)
			if n.text("name") == "list_aggr" { // an aggregate over a list of one record
				c.judgeListAggregate(n)
				return false
			}
		case "BOUND_AGGREGATE":
			if !mergeable(n.text("name")) {
				c.refused.add(n.at(), "the aggregate "+shown(n.text("name"))+" cannot be merged from partial results",
					aggregateCure(n.text("name")))
			}
		}
		return true
	})
}

// judgeListAggregate refuses an aggregate over a list whose value depends on more than the list and its order.
func (c *compiler) judgeListAggregate(n tree) {
	each(n["children"], func(child tree) bool {
		c.judgePlan(child)
		return false
	})
	each(n["function_data"], func(a tree) bool {
		name := a.text("name")
		if a.text("expression_class") == "BOUND_AGGREGATE" && !mergeable(name) &&
			!slices.Contains([]string{"string_agg", "median", "quantile_cont", "quantile_disc", "product"}, name) {
			c.refused.add(n.at(), "the aggregate "+shown(name)+" of a list may differ from run to run",
				"use list_sum, list_avg, list_min, list_max, list_median or array_to_string")
		}
		return true
	})
}

// judgeOperator refuses every step of a plan except known row-local steps and the aggregation.
func (c *compiler) judgeOperator(n tree) {
	switch n.kind() {
	case "LOGICAL_PROJECTION", "LOGICAL_FILTER", "LOGICAL_AGGREGATE_AND_GROUP_BY", "LOGICAL_UNNEST", "LOGICAL_CTE_REF",
		"LOGICAL_MATERIALIZED_CTE", "LOGICAL_EMPTY_RESULT":
		return
	case "LOGICAL_GET":
		data := n.child("function_data")
		if n.text("name") == "seq_scan" && data.text("table") == emptyTable && data.text("schema") == "main" {
			return
		}
	}
	what := strings.ToLower(strings.TrimPrefix(n.kind(), "LOGICAL_"))
	c.refused.add(0, "the query needs a step that cannot be computed in parts ("+what+")",
		"write one SELECT with GROUP BY over source")
}

// judgeFunction refuses a bound function that is denied, not consistent, or not in the catalogue.
func (c *compiler) judgeFunction(n tree) {
	name := strings.ToLower(n.text("name"))
	cure, is := deniedCall(name, len(n.list("children")))
	if f := c.functions[name]; !is && (f == nil || f.unstable) {
		cure, is = cureRecord, true
	}
	if is {
		c.refused.add(n.at(), shown(name)+" depends on more than the record", cure)
	}
}

const cureWindow = "group by the time: date_trunc('hour', ts) AS hour, or time_bucket(INTERVAL '5 minutes', ts) " +
	"AS start"

// streamWindow reports whether a name is a window function in the SQL of Flink or ksqlDB.
func streamWindow(name string) bool {
	switch name {
	case "tumble", "tumble_start", "tumble_end", "hop", "hop_start", "hop_end", "session", "cumulate", "tumbling",
		"hopping":
		return true
	}
	return false
}
