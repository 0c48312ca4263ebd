package query

import (
	"fmt"
	"strings"
)

// The hidden columns that carry a record's time and place in the log up to the aggregation: what orders first, last and
// the ties of arg_min and arg_max.
const (
	timeAlias  = "_kappactl_time"
	placeAlias = "_kappactl_place"
)

// placeColumns are the hidden columns as items over the columns of source.
func placeColumns(oneTopic bool) string {
	topic := "'topic': _topic, "
	if oneTopic {
		topic = ""
	}
	return fmt.Sprintf("coalesce(_timestamp, TIMESTAMPTZ '-infinity') AS %s, {%s'partition': _partition, 'offset': _offset} AS %s", ident(timeAlias), topic, ident(placeAlias))
}

// placeText writes a place as a text whose bytes are in the order of the log: time, topic, partition and offset, those
// that it has, numbers as hexadecimal digits.
func placeText(value, duck string) string {
	var parts []string
	if strings.Contains(duck, timeAlias) {
		at := value + "." + ident(timeAlias)
		micros := fmt.Sprintf("coalesce(epoch_us(%s), CASE WHEN %[1]s > TIMESTAMPTZ 'epoch' THEN 9223372036854775807 ELSE -9223372036854775807 END)", at)
		parts = append(parts, fmt.Sprintf("format('{:016x}', CAST(CAST(%s AS HUGEINT) + 9223372036854775808 AS UBIGINT))", micros))
		value += "." + ident(placeAlias)
	}
	if strings.Contains(duck, "topic ") {
		parts = append(parts, value+".topic")
	}
	parts = append(parts, fmt.Sprintf("format('{:08x}', %s.partition)", value), fmt.Sprintf("format('{:016x}', %s.\"offset\")", value))
	return fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN concat_ws(' ', %s) END", value, strings.Join(parts, ", "))
}
