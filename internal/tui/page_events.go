package tui

import (
	"slices"
	"time"

	"github.com/kappactl/kappactl/reprocess/ledger"
)

// eventsPage lists the events of a job, newest first.
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
		{title: "event", least: 8, most: 20, tight: 5},
		{title: "by", drop: 1, least: 6, most: 20},
		{title: "what", least: 24, most: 400, tight: 10, rest: true},
	}}
	for _, e := range m.shownEvents() {
		g.rows = append(g.rows, []cell{
			word(dim, since(m.now, e.At)), word(strong, e.Version), word(eventTone(e.Kind), string(e.Kind)), word(dim, e.By),
			word(plain, e.Message),
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
	head := e.At.UTC().Format(time.RFC3339) + "  " + clean(string(e.Kind))
	if e.By != "" {
		head += "  by " + clean(e.By)
	}
	out := []string{"", "  " + t.paint(dim, head)}
	for _, line := range t.wrap(clean(e.Message), width-4, 4) {
		out = append(out, "  "+line)
	}
	return out
}

// takeEvents keeps the event that is selected when newer ones come; on the newest the selection stays on the newest.
func (m *Model) takeEvents(events []Event) {
	var selected int64
	if shown := m.shownEvents(); m.page == pageEvents && m.scroll > 0 && len(shown) > 0 {
		selected = shown[min(m.scroll, len(shown)-1)].ID
	}
	m.events = events
	if at := slices.IndexFunc(m.shownEvents(), func(e Event) bool { return e.ID == selected }); selected != 0 && at >= 0 {
		m.scroll = at
	}
}

func (m *Model) shownEvents() []Event {
	var out []Event
	for _, e := range m.events {
		if m.matches(e.Version + " " + string(e.Kind) + " " + e.By + " " + e.Message) {
			out = append(out, e)
		}
	}
	return out
}

func eventTone(kind ledger.EventKind) tone {
	switch kind {
	case ledger.EventChecksFailed, ledger.EventCheckFailed, ledger.EventHookFailed, ledger.EventAbort,
		ledger.EventRolledBack,
		ledger.EventNotRolledBack, ledger.EventReadersLeft:
		return bad
	case ledger.EventPromoted, ledger.EventSettled, ledger.EventChecksPassed, ledger.EventCheckPassed:
		return live
	case ledger.EventWaiting, ledger.EventPause, ledger.EventPartition, ledger.EventCheckNoAnswer:
		return warn
	default:
		return candidate
	}
}
