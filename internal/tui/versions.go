package tui

import (
	"strings"

	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/status"
)

// widestVersion keeps both versions close enough to compare them.
const widestVersion = 56

// versionsPart is the live version at the left and the one in focus at the right; one alone when there is no other. The
// one that the rest of the page is about is marked.
func (m *Model) versionsPart(r room) []string {
	t := m.theme
	left, right := m.pair()
	width := min((r.width-margin)/2, widestVersion)
	if right == nil {
		width = r.width - margin
	}
	column := func(v *status.Version) []string {
		lines := []string{m.versionHead(v)}
		for _, c := range m.versionFacts(*v)[:min(r.facts, len(factNames()))] {
			lines = append(lines, t.paint(c.tone, c.text))
		}
		return lines
	}
	out := []string{strings.Repeat(" ", margin-2) + m.pointer(left)}
	for _, name := range factNames()[:min(r.facts, len(factNames()))] {
		out = append(out, t.label(name))
	}
	for i, text := range column(left) {
		out[i] += t.clip(text, width-2)
	}
	if right == nil {
		return out
	}
	for i, text := range column(right) {
		lead := "  "
		if i == 0 {
			lead = m.pointer(right)
		}
		out[i] = t.fit(out[i], margin+width-2, false) + lead + t.clip(text, r.width-margin-width)
	}
	return out
}

// pointer marks the version in focus when there is a choice.
func (m *Model) pointer(v *status.Version) string {
	if f := m.focused(); f.Version == v.Version && len(m.detail.Status.Versions) > 1 {
		return m.theme.paint(strong, m.theme.here) + " "
	}
	return "  "
}

// pair are the versions side by side: live, and the one in focus; when that is live, the one most of interest beside
// it.
func (m *Model) pair() (left, right *status.Version) {
	s := m.detail.Status
	l, f := s.LiveVersion(), m.focused()
	switch {
	case l == nil:
		return f, nil
	case f.Version != l.Version:
		return l, f
	}
	return l, beside(s)
}

func (m *Model) versionHead(v *status.Version) string {
	sign, as, name := m.theme.role(*v)
	head := m.theme.paint(as, sign+" ") + m.theme.paint(strong, v.Version) + " " + m.theme.paint(as, name)
	if v.Paused {
		head += " " + m.theme.paint(warn, "paused")
	}
	return head
}

// factNames are the rows, those that matter most first: a low window shows fewer.
func factNames() []string {
	return []string{
		"phase", "behind", "reads", "verdict", "dead letters", "records", "position", "hash", "revision", "staged",
	}
}

func (m *Model) versionFacts(v status.Version) []cell {
	t := m.theme
	sign, as, words, why := t.health(v.Verdict, v.ReasonCode, v.Reason)
	verdict := word(as, sign+" "+words+why)
	dead := word(plain, render.Count(v.DeadLetters))
	if v.DeadLetters > 0 {
		dead.tone = warn
	}
	lag := word(plain, behind(v.LagRecords, v.LagSeconds))
	if v.LagRecords == nil {
		lag.tone = warn
	}
	if v.Phase.Ended() {
		lag, verdict = word(dim, render.None), word(dim, render.None)
	}
	position := render.CountOf(v.Position)
	if v.Position != nil && v.End != nil {
		position += " of " + render.Count(*v.End)
	}
	return []cell{
		word(plain, strings.ReplaceAll(string(v.Phase), "_", " ")+" for "+ago(m.now, v.PhaseSince)),
		lag,
		word(plain, render.Rate(v.RecordsPerSecond)),
		verdict,
		dead,
		word(plain, render.Count(v.Records)),
		word(plain, position),
		word(dim, v.Hash),
		word(dim, render.Or(v.GitRevision)),
		word(dim, "by "+render.Or(v.CreatedBy)+", "+ago(m.now, v.CreatedAt)+" ago"),
	}
}
