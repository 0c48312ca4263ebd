package tui

import (
	"strings"
	"time"
)

// eventsPage is what happened to a job, newest first.
func (m *Model) eventsPage(width, height int) []string {
	if m.events == nil {
		if m.failure == nil && m.detail != nil && !m.seen.IsZero() && m.asked.IsZero() {
			return []string{"", "  " + m.theme.paint(dim, "nothing has happened yet")}
		}
		return m.waiting()
	}
	g := grid{columns: []column{
		{title: "time"},
		{title: "version"},
		{title: "event", least: 8, most: 18},
		{title: "by", drop: 1, least: 6, most: 24},
		{title: "what", least: 10, most: 400},
	}}
	for _, e := range m.shownEvents() {
		g.rows = append(g.rows, []cell{
			word(dim, since(m.now, e.At)), word(strong, e.Version), word(eventTone(e.Kind), e.Kind), word(dim, e.By), word(plain, e.Message),
		})
	}
	if len(g.rows) == 0 {
		return []string{"", "  " + m.theme.paint(dim, "no event matches")}
	}
	chosen := max(0, min(m.scroll, len(g.rows)-1))
	about := m.aboutEvent(chosen, width, height)
	height -= len(about)
	from := window(chosen, len(g.rows), height-1)
	lines := g.lines(m.theme, width, height, from, chosen)
	lines = m.theme.withScroll(lines, from, len(g.rows), width)
	for range height - len(lines) {
		lines = append(lines, "")
	}
	return append(lines, about...)
}

// aboutEvent is the whole text of the event that is selected, at the foot of a page that is high enough.
func (m *Model) aboutEvent(chosen, width, height int) []string {
	if height < 14 {
		return nil
	}
	e, t := m.shownEvents()[chosen], m.theme
	head := e.At.UTC().Format(time.RFC3339) + "  " + clean(e.Kind)
	if e.By != "" {
		head += "  by " + clean(e.By)
	}
	out := []string{"", "  " + t.paint(dim, head)}
	for _, line := range t.wrap(clean(e.Message), width-4, 4) {
		out = append(out, "  "+line)
	}
	return out
}

func (m *Model) shownEvents() []Event {
	var out []Event
	for _, e := range m.events {
		if m.matches(e.Version + " " + e.Kind + " " + e.By + " " + e.Message) {
			out = append(out, e)
		}
	}
	return out
}

func eventTone(kind string) tone {
	switch {
	case strings.Contains(kind, "fail"), kind == "abort", kind == "rolled back", kind == "not rolled back", kind == "taken back":
		return bad
	case kind == "promoted", kind == "settled", kind == "checks passed", kind == "check passed":
		return live
	case kind == "waiting", kind == "pause", kind == "partition", kind == "check without answer":
		return warn
	}
	return candidate
}

// rows is how many lines the page can scroll through.
func (m *Model) rows() int {
	if m.page == pageEvents {
		return len(m.shownEvents())
	}
	if v := m.focused(); v != nil {
		return len(m.shownPartitions(*v))
	}
	return 0
}
