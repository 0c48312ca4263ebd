package query

import "strings"

// foreignFunction returns what to write for a function of another system (ksqlDB, Flink, ClickHouse, Snowflake,
// BigQuery), or "".
func foreignFunction(name string) string {
	switch strings.ToLower(name) {
	case "latest_by_offset":
		return "last(x)"
	case "earliest_by_offset":
		return "first(x)"
	case "collect_list", "grouparray", "array_concat_agg":
		return "list(x), with distinct_max"
	case "collect_set", "groupuniqarray":
		return "list(DISTINCT x), with distinct_max"
	case "topk":
		return "max(x, n)"
	case "topkdistinct":
		return "list(DISTINCT x ORDER BY x DESC), with distinct_max"
	case "count_distinct", "uniqexact", "countdistinct":
		return "count(DISTINCT x), with distinct_max"
	case "approx_distinct", "uniq", "uniqcombined", "uniqhll12", "hll", "ndv":
		return "approx_count_distinct(x)"
	case "approx_quantiles", "approx_percentile", "percentile_approx", "quantileexact", "quantiletdigest", "percentile":
		return "approx_quantile(x, 0.9), or quantile_cont(x, 0.9) with distinct_max"
	case "sumif", "avgif", "minif", "maxif", "anyif", "sum_if", "avg_if":
		return "sum(x) FILTER (WHERE condition)"
	case "any", "anyvalue", "anylast":
		return "any_value(x), or last(x)"
	case "logical_and", "booland_agg":
		return "bool_and(x)"
	case "logical_or", "boolor_agg":
		return "bool_or(x)"
	case "tostartofminute", "tostartofhour", "tostartofday", "tostartofmonth", "timestamp_trunc", "datetime_trunc":
		return "date_trunc('hour', ts)"
	case "tostartofinterval", "date_bin", "time_slice", "tostartoffiveminutes", "tostartoffiveminute",
		"tostartoffifteenminutes", "tostarttenminutes":
		return "time_bucket(INTERVAL '5 minutes', ts)"
	case "safe_divide", "div0":
		return "a / nullif(b, 0)"
	case "nvl", "zeroifnull":
		return "coalesce(x, 0)"
	case "iff":
		return "CASE WHEN condition THEN a ELSE b END"
	case "proctime", "rowtime", "mz_now", "unix_timestamp", "getdate", "sysdate":
		return "_timestamp, the time of the record"
	case "to_timestamp_ltz":
		return "make_timestamp(micros), or epoch_ms(millis)"
	}
	return ""
}

// unknownFunction refuses a function that DuckDB does not have.
func (c *compiler) unknownFunction(n tree, name string) {
	cure := "use a function of DuckDB"
	if ours := foreignFunction(n.function()); ours != "" {
		cure = "write " + ours
	}
	c.refused.add(placeOf(n), named(name, n.function()+"() is no function of DuckDB"), cure)
}
