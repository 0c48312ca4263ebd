package query

import (
	"fmt"
	"strings"
)

// combinePick keeps the value that comes first (or last) in the order of the states in with. The last of these is the
// place of the record, which is NULL if there was none yet.
func (s *state) combinePick() string {
	than := map[merge]string{mergeFirst: "<", mergeLast: ">"}[s.merge]
	place := s.more[len(s.more)-1]
	return fmt.Sprintf("CASE WHEN t.%s IS NULL OR %s %s %s THEN e.%s ELSE t.%[5]s END",
		ident(place.name), rowOf("e", s.more), than, rowOf("t", s.more), ident(s.name))
}

// aggregatePick does the same over many rows.
func (s *state) aggregatePick() string {
	direction := map[merge]string{mergeFirst: "", mergeLast: " DESC"}[s.merge]
	order := make([]string, len(s.more))
	for i, o := range s.more {
		order[i] = o.column("e") + direction
	}
	place := s.more[len(s.more)-1]
	return fmt.Sprintf("(array_agg(e.%s ORDER BY %s) FILTER (WHERE e.%s IS NOT NULL))[1]",
		ident(s.name), strings.Join(order, ", "), ident(place.name))
}

// rowOf returns the states of one row as a value that is compared from left to right.
func rowOf(row string, states []*state) string {
	columns := make([]string, len(states))
	for i, s := range states {
		columns[i] = s.column(row)
	}
	if len(columns) == 1 {
		return columns[0]
	}
	return "(" + strings.Join(columns, ", ") + ")"
}
