package tui

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// footerLine is the filter while it is typed, else what the last key led to, else the cause of stale data, else the
// keys.
func (m *Model) footerLine() string {
	t := m.theme
	switch {
	case m.typing:
		return " " + t.paint(strong, "/") + m.filters[m.page].text + t.cursor + t.paint(dim, "   enter keeps, esc clears")
	case m.note != "":
		return " " + t.paint(warn, clean(m.note))
	case m.failure != nil && !m.help && m.confirm == nil:
		return m.failureLine()
	case m.help, m.confirm != nil && m.confirm.stage == stageDone:
		return m.hints(nil, []string{"esc back"})
	case m.confirm != nil && m.confirm.stage == stageTyping:
		return m.hints(nil, []string{"enter do it", "esc back"})
	case m.confirm != nil:
		return m.hints(nil, []string{"esc back"})
	}
	first := m.actHints()
	switch m.page {
	case pageOverview:
		first = append([]string{"enter open"}, first...)
		first = append(first, "e events")
	case pageDeployment:
		first = append(first, "e events", t.leftRight()+" version")
		if m.layers() != nil {
			first = append(first, "b layers")
		}
		if m.detail != nil && m.detail.Experiment != nil {
			first = append(first, "t experiment")
		}
	case pageEvents:
	case pageLayers:
		first = append(m.batchHints(), "e events")
	case pageExperiment:
		first = append(m.abHints(), "e events")
	}
	filter := "/ filter"
	if text := m.filters[m.page].text; text != "" {
		filter = "/" + clean(text) + " (esc clears)"
	}
	last := []string{filter, "? help", "q quit"}
	if m.page == pageLayers || m.page == pageExperiment {
		last = last[1:]
	}
	if m.page != pageOverview {
		last = append([]string{"esc back"}, last...)
	}
	return m.hints(first, last)
}

// failureLine is why the last query failed. The cause is at the end of an error: a long one loses its beginning.
func (m *Model) failureLine() string {
	t := m.theme
	lead := " " + t.warn + " the last look failed: "
	text := clean(m.failure.Error())
	if over := cells(lead+text) - m.width; over > 0 {
		text = ansi.TruncateLeft(text, over+cells(t.mark), t.mark)
	}
	return t.paint(warn, lead+text)
}

// actHints are the keys of the acts that something on the page can take; all of them while nothing is known.
func (m *Model) actHints() []string {
	if m.readOnly {
		return nil
	}
	var out []string
	for _, h := range []struct {
		verb ledger.Verb
		hint string
	}{
		{ledger.Promote, "p promote"},
		{ledger.Rollback, "r rollback"},
		{m.pauseOrResume(), "space " + string(m.pauseOrResume())},
		{ledger.Abort, "a abort"},
	} {
		if m.possible(h.verb) {
			out = append(out, h.hint)
		}
	}
	return out
}

// possible reports whether the version that was chosen, or any of the job, can be asked for this.
func (m *Model) possible(verb ledger.Verb) bool {
	s, known := m.status()
	if !known {
		return m.current() != ""
	}
	return slices.ContainsFunc(s.Versions, func(v status.Version) bool {
		chosen := m.page != pageDeployment || m.focus == "" || m.focus == v.Version
		return chosen && verb.Takes(v.Phase, v.Paused)
	})
}

func (t theme) leftRight() string {
	if t.rule == "-" {
		return "< >"
	}
	return "← →"
}

// hints are keys with what they do. Those of last stay when the window is narrow, the end of it longest.
func (m *Model) hints(first, last []string) string {
	all, apart := slices.Concat(first, last), "   "
	if cells(strings.Join(all, apart))+1 > m.width {
		apart = "  "
	}
	for len(all) > 1 && cells(strings.Join(all, apart))+1 > m.width {
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
	return " " + strings.Join(all, apart)
}
