package query

import (
	"fmt"
	"strings"
)

// timeFunction writes a function of dates, times and intervals. Times are UTC in both engines.
func timeFunction(name string, args []term, out term) (term, error) {
	is := func(kinds ...valueKind) bool {
		if len(args) != len(kinds) {
			return false
		}
		for i, k := range kinds {
			if args[i].kind != k {
				return false
			}
		}
		return true
	}
	switch {
	case name == "-" && (is(kindTime, kindTime) || is(kindZoned, kindZoned) || is(kindDate, kindDate)):
		return timeDifference(args, out), nil
	case name == "epoch" && (is(kindTime) || is(kindZoned) || is(kindInterval)),
		name == "date_part" && len(args) == 2 && args[0].text == "epoch" && (args[1].kind == kindTime ||
			args[1].kind == kindZoned || args[1].kind == kindInterval):
		return epoch(args[len(args)-1], out), nil
	case name == "date_diff" && (is(kindText, kindTime, kindTime) || is(kindText, kindZoned, kindZoned)),
		name == "datediff" && (is(kindText, kindTime, kindTime) || is(kindText, kindZoned, kindZoned)):
		return unitDifference(args, out)
	}
	return term{}, unknown("%s of these types", operation(name))
}

// finite writes a text over times that are neither infinite nor NULL.
func finite(args []term, body func(pg bool, names []string) string) (pg, duck string) {
	var texts, ducks []string
	for _, a := range args {
		texts, ducks = append(texts, a.pg), append(ducks, "("+a.duck+")")
	}
	condition := func(names []string) string {
		var parts []string
		for _, n := range names {
			parts = append(parts, "isfinite("+n+")")
		}
		return strings.Join(parts, " AND ")
	}
	pg = let(texts, func(names []string) string {
		return "CASE WHEN " + condition(names) + " THEN " + body(true, names) + " END"
	})
	return pg, "CASE WHEN " + condition(ducks) + " THEN " + body(false, ducks) + " END"
}

// timeDifference writes the difference of two times: an interval of days and hours, or a number of days.
func timeDifference(args []term, out term) term {
	out.strict = true
	out.pg, out.duck = finite(args, func(pg bool, n []string) string {
		if pg && args[0].kind == kindDate {
			return "(" + n[0] + " - " + n[1] + ")::numeric"
		}
		return n[0] + " - " + n[1]
	})
	return out
}

// epoch writes the seconds of a time or an interval, as a double.
func epoch(x term, out term) term {
	body := func(pg bool, n []string) string {
		if pg {
			return "extract(epoch FROM " + n[0] + ")::double precision"
		}
		return "epoch(" + n[0] + ")"
	}
	out.size = span{-7, 14}
	if x.kind == kindInterval {
		out.pg, out.duck = body(true, []string{"(" + x.pg + ")"}), body(false, []string{x.duck})
		return out
	}
	out.strict = true
	out.pg, out.duck = finite([]term{x}, body)
	return out
}

// unitDifference writes date_diff: the number of boundaries of a unit between two times.
func unitDifference(args []term, out term) (term, error) {
	seconds, ok := map[string]string{
		"microsecond": "0.000001", "microseconds": "0.000001", "millisecond": "0.001", "milliseconds": "0.001",
		"second": "1", "seconds": "1", "minute": "60", "minutes": "60", "hour": "3600", "hours": "3600", "day": "86400",
		"days": "86400",
	}[strings.ToLower(args[0].text)]
	if !ok {
		return term{}, unknown("date_diff(%s, …)", literal(args[0].text))
	}
	out.strict = true
	out.pg, out.duck = finite(args[1:], func(pg bool, n []string) string {
		if !pg {
			return fmt.Sprintf("date_diff(%s, %s, %s)", literal(args[0].text), n[0], n[1])
		}
		count := func(t string) string { return fmt.Sprintf("floor(extract(epoch FROM %s) / %s)", t, seconds) }
		return count(n[1]) + " - " + count(n[0])
	})
	return out, nil
}
