package tui

import "fmt"

// sight is which rows of a list are in sight: from, from+1, … before to, of all.
type sight struct{ from, to, all int }

func newSight(from, height, all int) sight { return sight{from, min(from+height, all), all} }

func (s sight) words(t theme) string {
	if s.to <= s.from || s.from == 0 && s.to == s.all {
		return ""
	}
	return fmt.Sprintf("%d%s%d/%d %s", s.from+1, t.dash, s.to, s.all, s.arrows(t))
}

func (s sight) arrows(t theme) string {
	arrows := ""
	if s.from > 0 {
		arrows += t.up
	}
	if s.to < s.all {
		arrows += t.down
	}
	return arrows
}
