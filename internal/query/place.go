package query

import (
	"fmt"
	"strings"
)

// The hidden columns that pass a record's time and place in the log up to the aggregation. They order first, last and
// the ties of arg_min and arg_max.
const (
	timeAlias  = "_kappactl_time"
	placeAlias = "_kappactl_place"
)

// placeColumns returns the hidden columns as items over the columns of source.
func placeColumns(oneTopic bool) string {
	topic := "'topic': _topic, "
	if oneTopic {
		topic = ""
	}
	return fmt.Sprintf("coalesce(_timestamp, TIMESTAMPTZ '-infinity') AS %s, {%s'partition': _partition, 'offset': "+
		"_offset} AS %s", ident(timeAlias), topic, ident(placeAlias))
}

// placeText writes a place as a text whose bytes sort in the order of the log: time, topic, partition and offset as far
// as they exist, with numbers as hexadecimal digits.
func placeText(value, duck string) string {
	var parts []string
	if strings.Contains(duck, timeAlias) {
		parts = append(parts, timeText(value+"."+ident(timeAlias)))
		value += "." + ident(placeAlias)
	}
	if strings.Contains(duck, "topic ") {
		parts = append(parts, value+".topic")
	}
	parts = append(parts, partitionText(value), offsetText(value))
	return fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN concat_ws(' ', %s) END", value, strings.Join(parts, ", "))
}

// timeText writes a timestamp with time zone as hexadecimal digits in the order of time.
func timeText(at string) string {
	micros := fmt.Sprintf("coalesce(epoch_us(%s), CASE WHEN %[1]s > TIMESTAMPTZ 'epoch' THEN 9223372036854775807 ELSE "+
		"-9223372036854775807 END)", at)
	return fmt.Sprintf("format('{:016x}', CAST(CAST(%s AS HUGEINT) + 9223372036854775808 AS UBIGINT))", micros)
}

// partitionText and offsetText write these parts of a place as hexadecimal digits.
func partitionText(place string) string { return fmt.Sprintf("format('{:08x}', %s.partition)", place) }

func offsetText(place string) string { return fmt.Sprintf("format('{:016x}', %s.\"offset\")", place) }
