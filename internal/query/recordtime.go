package query

import "strings"

// byRecord reports whether the column of this name is _timestamp, or _timestamp rounded down, so that it is never later
// than the timestamp of its record. It returns false if the query reads source through a subquery, where _timestamp may
// be another column.
func (c *compiler) byRecord(name string) bool {
	from := c.node.child("from_table")
	if from.kind() != fromTable || len(c.node.child("cte_map").list("map")) > 0 {
		return false
	}
	for _, it := range c.items {
		if it.name == name {
			return recordTime(it.node)
		}
	}
	return false
}

// recordTime reports whether an expression is _timestamp inside nothing but date_trunc, time_bucket and casts to a
// time.
func recordTime(e tree) bool {
	args := e.list("children")
	switch e.class() {
	case classColumn:
		names := e.texts("column_names")
		return len(names) > 0 && strings.EqualFold(names[len(names)-1], "_timestamp")
	case classCast:
		switch e.child("cast_type").text("id") {
		case "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE":
			return recordTime(e.child("child"))
		}
	case classFunction:
		return (e.function() == "date_trunc" || e.function() == "time_bucket") && len(args) == 2 &&
			args[0].class() != classColumn && recordTime(args[1])
	}
	return false
}
