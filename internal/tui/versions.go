package tui

import (
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess"
)

// widestVersion keeps both versions close enough to compare them.
const widestVersion = 56

// versionsPart is the live version at the left and the one in focus at the right; one alone when there is no other.
func (m *Model) versionsPart(r room) []string {
	t := m.theme
	left, right := m.pair()
	width := min((r.width-margin)/2, widestVersion)
	out := []string{t.label("") + t.fit(m.versionHead(left), width, false)}
	if right != nil {
		out[0] += t.clip(m.versionHead(right), width)
	}
	a, b := m.versionFacts(*left), []cell(nil)
	if right != nil {
		b = m.versionFacts(*right)
	}
	for i, name := range factNames() {
		if i >= r.facts {
			break
		}
		line := t.label(name)
		if right == nil {
			out = append(out, line+t.paint(a[i].tone, t.clip(a[i].text, r.width-margin)))
			continue
		}
		text := t.clip(a[i].text, width-2)
		line += t.fit(t.paint(a[i].tone, text), width, false)
		out = append(out, line+t.paint(b[i].tone, t.clip(b[i].text, width)))
	}
	return out
}

// pair are the versions side by side: live, and the one in focus; when that is live, the one most of interest beside it.
func (m *Model) pair() (left, right *reprocess.VersionStatus) {
	s := m.detail.Status
	l, f := liveOf(s), m.focused()
	switch {
	case l == nil:
		return f, nil
	case f.Version != l.Version:
		return l, f
	}
	return l, beside(s)
}

func (m *Model) versionHead(v *reprocess.VersionStatus) string {
	sign, as, name := m.theme.role(*v)
	head := m.theme.paint(as, sign+" ") + m.theme.paint(strong, v.Version) + " " + m.theme.paint(as, name)
	if v.Paused {
		head += " " + m.theme.paint(warn, "paused")
	}
	if f := m.focused(); f != nil && f.Version == v.Version && len(m.detail.Status.Versions) > 1 {
		head += m.theme.paint(dim, "  shown below")
	}
	return head
}

// factNames are the rows, those that matter most first: a low window shows fewer.
func factNames() []string {
	return []string{"phase", "behind", "reads", "verdict", "dead letters", "records", "position", "hash", "revision", "staged"}
}

func (m *Model) versionFacts(v reprocess.VersionStatus) []cell {
	t := m.theme
	sign, as := t.verdictLook(v.Verdict)
	verdict := word(as, sign+" "+verdictWords(v.Verdict)+reasonOf(v))
	if v.Phase.Ended() {
		verdict = word(dim, t.none)
	}
	dead := word(plain, render.Count(v.DeadLetters))
	if v.DeadLetters > 0 {
		dead.tone = warn
	}
	lag := word(plain, behind(v.LagRecords, v.LagSeconds))
	if v.LagRecords == nil {
		lag.tone = warn
	}
	if v.Phase.Ended() {
		lag = word(dim, t.none)
	}
	position := render.CountOf(v.Position)
	if v.Position != nil && v.End != nil {
		position += " of " + render.Count(*v.End)
	}
	return []cell{
		word(plain, phaseWords(v)+" for "+ago(m.now, v.PhaseSince)),
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
