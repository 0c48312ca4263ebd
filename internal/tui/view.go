package tui

import (
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
		return m.helpPage(width, height)
	case m.confirm != nil:
		return m.confirmPage(width, height)
	}
	switch m.page {
	case pageOverview:
		return m.overviewPage(width, height)
	case pageEvents:
		return m.eventsPage(width, height)
	case pageLayers:
		return m.layersPage(width, height)
	case pageExperiment:
		return m.experimentPage(width, height)
	case pageDeployment:
	}
	return m.deploymentPage(width, height)
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
