package tui

import (
	"slices"
	"strings"
	"time"
)

// View draws the window.
func (m *Model) View() string { return strings.Join(m.frame(), "\n") }

// title is that of the terminal's window.
func (m *Model) title() string {
	if m.job == "" || m.page == pageOverview {
		return "kappactl"
	}
	return clean("kappactl " + string(m.job))
}

// The window is header, rule, body, rule, footer. A low one gives up the rules, then the footer, then the header.
func (m *Model) rules() bool  { return m.height >= 10 }
func (m *Model) footer() bool { return m.height >= 4 }
func (m *Model) header() bool { return m.height >= 2 }

func (m *Model) bodyHeight() int {
	h := m.height
	if m.header() {
		h--
	}
	if m.footer() {
		h--
	}
	if m.rules() {
		h -= 2
	}
	return max(0, h)
}

// frame is the window as lines: no more than its height, none wider than its width.
func (m *Model) frame() []string {
	if m.width <= 0 || m.height <= 0 {
		return nil
	}
	rule := m.theme.paint(dim, strings.Repeat(m.theme.rule, m.width))
	var out []string
	if m.header() {
		out = append(out, m.headerLine())
	}
	if m.rules() {
		out = append(out, rule)
	}
	body := m.body(m.width, m.bodyHeight())
	body = body[:min(len(body), m.bodyHeight())]
	out = append(out, body...)
	for range m.bodyHeight() - len(body) {
		out = append(out, "")
	}
	if m.rules() {
		out = append(out, rule)
	}
	if m.footer() {
		out = append(out, m.footerLine())
	}
	for i := range out {
		out[i] = m.theme.clip(strings.TrimRight(out[i], " "), m.width)
	}
	return out
}

func (m *Model) body(width, height int) []string {
	switch {
	case m.help:
		return m.helpPage(height)
	case m.confirm != nil:
		return m.confirmPage(width, height)
	}
	switch m.page {
	case pageOverview:
		return m.overviewPage(width, height)
	case pageEvents:
		return m.eventsPage(width, height)
	case pageDeployment:
	}
	return m.deploymentPage(width, height)
}

// headerLine says where one is and how fresh what one sees is.
func (m *Model) headerLine() string {
	t := m.theme
	left := " " + t.paint(strong, "kappactl")
	switch m.page {
	case pageOverview:
		left += t.paint(dim, "  jobs")
	case pageDeployment:
		left += "  " + t.paint(strong, clean(string(m.job)))
	case pageEvents:
		left += "  " + t.paint(strong, clean(string(m.job))) + t.paint(dim, "  events")
	}
	if m.page != pageOverview && m.detail != nil {
		about := m.detail.Status.View
		if team := m.detail.Status.Team; team != "" {
			about += "  " + t.dot + "  " + team
		}
		right := m.freshness() + " "
		if full := left + "  " + t.paint(dim, clean(about)); cells(full)+cells(right)+2 <= m.width {
			left = full
		}
	}
	return t.ends(left, m.freshness()+" ", m.width)
}

// freshness is the clock, or how old the data is when the last look failed.
func (m *Model) freshness() string {
	t := m.theme
	clock := t.paint(dim, m.now.UTC().Format("15:04:05")+" UTC")
	agents, known := m.agents()
	switch {
	case m.stale():
		return t.paint(warn, t.warn+" "+m.age()+", reconnecting") + "  " + clock
	case known && agents == 0:
		return t.paint(bad, t.warn+" no agent is alive") + "  " + clock
	case known && agents == 1:
		return t.paint(dim, "1 agent") + "  " + clock
	case known:
		n := int64(agents)
		return t.paint(dim, short(&n)+" agents") + "  " + clock
	}
	return clock
}

// stale says that what is on the page is not what is: the last look failed, or none came back for long.
func (m *Model) stale() bool {
	return m.failure != nil || !m.seen.IsZero() && m.now.Sub(m.seen) > lookPatience
}

func (m *Model) age() string {
	if m.seen.IsZero() {
		return "no data"
	}
	return "data of " + ago(m.now, m.seen) + " ago"
}

func (m *Model) agents() (n int, known bool) {
	switch {
	case m.page == pageOverview && m.overview != nil:
		return m.overview.Agents, true
	case m.page != pageOverview && m.detail != nil:
		return m.detail.Agents, true
	}
	return 0, false
}

// footerLine is the filter while it is typed, else what the last key led to, else the cause of stale data, else the keys.
func (m *Model) footerLine() string {
	t := m.theme
	switch {
	case m.typing:
		return " " + t.paint(strong, "/") + m.filters[m.page].text + t.cursor + t.paint(dim, "   enter keeps, esc clears")
	case m.note != "":
		return " " + t.paint(warn, clean(m.note))
	case m.failure != nil && !m.help && m.confirm == nil:
		return " " + t.paint(warn, t.warn+" "+clean(m.failure.Error()))
	case m.help, m.confirm != nil && m.confirm.stage == stageDone:
		return m.hints([]string{}, []string{"esc back"})
	case m.confirm != nil && m.confirm.stage == stageTyping:
		return m.hints(nil, []string{"enter do it", "esc back"})
	case m.confirm != nil:
		return m.hints(nil, []string{"esc back"})
	}
	var first []string
	if !m.readOnly {
		first = []string{"p promote", "r roll back", "space pause", "a abort"}
		if m.pauseOrResume() == "resume" {
			first[2] = "space resume"
		}
	}
	switch m.page {
	case pageOverview:
		first = append([]string{"enter open"}, first...)
		first = append(first, "e events")
	case pageDeployment:
		first = append(first, "e events", t.leftRight()+" version")
	case pageEvents:
	}
	filter := "/ filter"
	if text := m.filters[m.page].text; text != "" {
		filter = "/" + clean(text) + " (esc clears)"
	}
	last := []string{filter, "? help", "q quit"}
	if m.page != pageOverview {
		last = append([]string{"esc back"}, last...)
	}
	return m.hints(first, last)
}

func (t theme) leftRight() string {
	if t.rule == "-" {
		return "< >"
	}
	return "← →"
}

// hints are keys with what they do. Those of last stay when the window is narrow, the end of it longest.
func (m *Model) hints(first, last []string) string {
	all := slices.Concat(first, last)
	for len(all) > 1 && cells(strings.Join(all, "   "))+2 > m.width {
		drop := len(first) - 1
		if drop < 0 {
			drop = 0
		} else {
			first = first[:drop]
		}
		all = append(all[:drop:drop], all[drop+1:]...)
	}
	for i, h := range all {
		name, does, _ := strings.Cut(h, " ")
		if name == "←" || name == "<" {
			name, does = h[:strings.LastIndex(h, " ")], h[strings.LastIndex(h, " ")+1:]
		}
		all[i] = m.theme.paint(strong, name) + " " + m.theme.paint(dim, does)
	}
	return " " + strings.Join(all, "   ")
}

// waiting is shown until the first answer.
func (m *Model) waiting() []string {
	if m.failure != nil {
		return []string{"", "  " + m.theme.paint(warn, "nothing to show yet: the last look failed")}
	}
	return []string{"", "  " + m.theme.paint(dim, "asking"+m.theme.mark)}
}

// since prints a moment of today as a time, another one as a date.
func since(now, at time.Time) string {
	if now.UTC().Format(time.DateOnly) == at.UTC().Format(time.DateOnly) {
		return at.UTC().Format("15:04:05")
	}
	return at.UTC().Format("01-02 15:04")
}
