package query

import (
	"fmt"
	"strings"
)

// One value of one record can make DuckDB allocate any amount of memory, which memory_limit does not bound: lists and
// texts are allocated outside its buffers. A function whose arguments determine the size of its result is therefore
// limited by a macro of the same name, which DuckDB finds first. Exceeding the limit is an error over that record
// alone.
const (
	maxElements  = 1_000_000 // of a list that range, generate_series or list_resize produces
	maxMadeBytes = 4_000_000 // of a text that repeat, lpad or rpad produces
)

// limits returns the statements that define the macros.
func limits() []string {
	name := func(call string) string {
		before, _, _ := strings.Cut(call, "(")
		return before
	}
	tooMany := func(count, call string) string {
		return fmt.Sprintf("CASE WHEN %s > %d THEN error('%s: %s makes a list of more than %d elements') ELSE "+
			"system.main.%s END",
			count, maxElements, TooExpensive, name(call), maxElements, call)
	}
	tooLong := func(size, call string) string {
		return fmt.Sprintf("CASE WHEN %s > %d THEN error('%s: %s makes a text of more than %d bytes') ELSE system.main.%s END",
			size, maxMadeBytes, TooExpensive, name(call), maxMadeBytes, call)
	}
	var out []string
	for _, f := range []string{"range", "generate_series"} {
		sql := fmt.Sprintf("CREATE MACRO %s(a BIGINT) AS %s, (a BIGINT, b BIGINT) AS %s, (a BIGINT, b BIGINT, c BIGINT) AS %s", f,
			tooMany("a", f+"(a)"), tooMany("b::HUGEINT - a", f+"(a, b)"),
			tooMany("(b::HUGEINT - a) / nullif(c, 0)", f+"(a, b, c)"))
		for _, typ := range []string{"TIMESTAMP", "TIMESTAMP WITH TIME ZONE"} {
			sql += fmt.Sprintf(", (a %[1]s, b %[1]s, c INTERVAL) AS %[2]s", typ,
				tooMany("(epoch(b) - epoch(a)) / nullif(epoch(c), 0)", f+"(a, b, c)"))
		}
		out = append(out, sql)
	}
	for _, f := range []string{"list_resize", "array_resize"} {
		out = append(out, fmt.Sprintf("CREATE MACRO %s(l, n) AS %s, (l, n, v) AS %s", f, tooMany("n", f+"(l, n)"),
			tooMany("n", f+"(l, n, v)")))
	}
	for _, f := range []string{"lpad", "rpad"} {
		out = append(out, fmt.Sprintf("CREATE MACRO %s(s, n, p) AS %s", f, tooLong("n", f+"(s, n, p)")))
	}
	return append(out, "CREATE MACRO repeat(s, n) AS "+tooLong("strlen(CAST(s AS VARCHAR))::HUGEINT * n", "repeat(s, n)"))
}
