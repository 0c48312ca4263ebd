package tui

import (
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess"
)

// margin is where values begin: labels stand to the left of it.
const margin = 16

// The smallest body that shows both versions; a smaller one shows a few lines about one of them.
const (
	narrowest = 48
	lowest    = 6
)

// room is how much each part of the page gets.
type room struct {
	width   int
	facts   int // lines of the two versions
	air     bool
	waits   int // lines
	chart   int // lines of the lag curve; 0 is sparklines on one line
	trends  bool
	checks  int // lines; 0 is none
	notes   int // lines; what is out of the ordinary
	columns bool
}

// plan shares the height out: partitions get what is left.
func plan(width, height int) room {
	r := room{width: width, facts: 2, waits: 1, notes: 1}
	switch {
	case height >= 48:
		r.facts, r.air, r.waits, r.chart, r.trends, r.checks, r.notes = 10, true, 3, 8, true, 10, 6
	case height >= 32:
		r.facts, r.air, r.waits, r.chart, r.trends, r.checks, r.notes = 9, true, 2, 4, true, 6, 4
	case height >= 24:
		r.facts, r.air, r.waits, r.trends, r.checks, r.notes = 6, true, 2, true, 3, 3
	case height >= 18:
		r.facts, r.air, r.waits, r.trends, r.checks, r.notes = 5, true, 2, true, 1, 2
	case height >= 13:
		r.facts, r.trends, r.checks = 4, true, 1
	}
	r.columns = width >= 150 && height >= 32
	return r
}

// deploymentPage is one job: both versions, how far the one in focus is, what it waits for, and its partitions.
func (m *Model) deploymentPage(width, height int) []string {
	v := m.focused()
	switch {
	case m.detail == nil:
		return m.waiting()
	case v == nil:
		return []string{"", "  no version yet"}
	}
	if width < narrowest || height < lowest {
		return m.compactPage(*v, width)
	}
	r := plan(width, height)
	out := m.versionsPart(r)
	add := func(part []string) {
		if len(part) > 0 && r.air {
			out = append(out, "")
		}
		out = append(out, part...)
	}
	add(append(m.progressPart(r, *v), m.waitsPart(r, *v)...))
	if r.columns {
		add(m.columnsPart(r, *v, height-len(out)-1))
		return out
	}
	trends, rest := m.trendsPart(r, *v, width), append(m.checksPart(r, *v, width), m.notesPart(r, *v)...)
	if r.chart == 0 {
		trends, rest = append(trends, rest...), nil
	}
	add(trends)
	add(rest)
	left := height - len(out)
	if r.air {
		left--
	}
	add(m.partitionsPart(*v, width, left))
	return out
}

// compactPage is what matters of the version in focus, for a window in which nothing else fits.
func (m *Model) compactPage(v reprocess.VersionStatus, width int) []string {
	t := m.theme
	sign, as, _ := t.role(v)
	verdictSign, verdictTone := t.verdictLook(v.Verdict)
	p := versionProgress(v, m.detail.Facts[v.Version])
	words, wordsTone := outlook(v, latest(m.curve(m.job, v.Version).made()))
	out := []string{
		t.paint(as, sign) + " " + t.paint(strong, v.Version) + " " + t.paint(as, phaseWords(v)),
		t.paint(verdictTone, verdictSign+" "+verdictWords(v.Verdict)),
		p.percent() + " " + t.bar(as, p.share(), min(40, width-cells(p.percent())-1)),
		behind(v.LagRecords, v.LagSeconds),
		t.paint(wordsTone, words),
	}
	for i := range out {
		out[i] = t.clip(out[i], width)
	}
	return out
}

// columnsPart puts the partitions at the left, and curves, checks and notes at the right of a wide window.
func (m *Model) columnsPart(r room, v reprocess.VersionStatus, height int) []string {
	leftWidth := r.width*11/20 - 2
	rightWidth := r.width - leftWidth - 4
	left := m.partitionsPart(v, leftWidth, height)
	rest := append([]string{""}, m.checksPart(r, v, rightWidth)...)
	if notes := m.notesPart(narrower(r, rightWidth), v); len(notes) > 0 {
		rest = append(append(rest, ""), notes...)
	}
	r.chart = max(1, min(height-len(rest)-3, 16))
	right := append(m.trendsPart(r, v, rightWidth), rest...)
	var out []string
	for i := range max(len(left), min(len(right), height)) {
		var a, b string
		if i < len(left) {
			a = left[i]
		}
		if i < len(right) {
			b = right[i]
		}
		out = append(out, strings.TrimRight(m.theme.fit(a, leftWidth, false)+"    "+m.theme.clip(b, rightWidth), " "))
	}
	return out
}

func narrower(r room, width int) room {
	r.width = width
	return r
}

// label starts a line with what it is about.
func (t theme) label(text string) string {
	return "  " + t.paint(dim, t.fit(strings.ToUpper(text), margin-2, false))
}

// progressPart is the bar over all partitions and when it will be full.
func (m *Model) progressPart(r room, v reprocess.VersionStatus) []string {
	if v.Phase.Ended() {
		return nil
	}
	t := m.theme
	p := versionProgress(v, m.detail.Facts[v.Version])
	_, as, _ := t.role(v)
	words, wordsTone := outlook(v, latest(m.curve(m.job, v.Version).made()))
	counts := "unknown"
	if p.known {
		counts = short(&p.done) + " of " + short(&p.total)
	}
	barWidth := min(60, max(0, r.width-margin-34))
	if barWidth < 8 {
		barWidth = 0
	}
	line := t.label("progress") + t.bar(as, p.share(), barWidth)
	if barWidth > 0 {
		line += "  "
	}
	line += t.paint(strong, p.percent()) + "  " + t.paint(dim, counts)
	if full := line + "  " + t.paint(wordsTone, words); cells(full) <= r.width {
		return []string{full}
	}
	if r.facts < 4 {
		return []string{line + "  " + t.paint(wordsTone, words)}
	}
	return []string{line, t.label("") + t.paint(wordsTone, words)}
}

func (m *Model) waitsPart(r room, v reprocess.VersionStatus) []string {
	t := m.theme
	text := clean(waitsFor(v, m.deploymentOf(v.Version), m.detail.Facts[v.Version], m.readOnly))
	_, as := t.verdictLook(v.Verdict)
	if as != bad && as != warn {
		as = plain
	}
	label := "waits for"
	var out []string
	for i, line := range t.wrap(text, r.width-margin, r.waits) {
		if i > 0 {
			label = ""
		}
		out = append(out, t.label(label)+t.paint(as, line))
	}
	return out
}

func (m *Model) deploymentOf(version string) *reprocess.DeploymentStatus {
	for i := range m.detail.Status.Deployments {
		if m.detail.Status.Deployments[i].Version == version {
			return &m.detail.Status.Deployments[i]
		}
	}
	return nil
}

// notesPart is what is out of the ordinary: retention, dead letters, a queue, warnings, windows that end.
func (m *Model) notesPart(r room, v reprocess.VersionStatus) []string {
	t := m.theme
	var out []string
	add := func(label string, as tone, text string) {
		if len(out) < r.notes {
			out = append(out, t.label(label)+t.paint(as, t.clip(clean(text), r.width-margin)))
		}
	}
	if text, as := m.retention(v); text != "" {
		add("retention", as, text)
	}
	if v.DeadLetters > 0 && r.facts < 5 {
		add("dead letters", warn, t.warn+" "+render.Plural(v.DeadLetters, "record")+" of "+short(&v.Records)+" could not be processed")
	}
	if v.Phase == job.Replaying && v.Verdict == job.Starting && strings.HasPrefix(v.Reason, "queued") {
		add("queue", warn, v.Reason)
	}
	for _, text := range m.warned(v) {
		label := "warning"
		for _, line := range t.wrap(t.warn+" "+clean(text), r.width-margin, min(2, r.notes-len(out))) {
			add(label, warn, line)
			label = ""
		}
	}
	for _, d := range m.detail.Status.Deployments {
		if d.State == job.Observing && d.ObserveUntil != nil {
			add("window", plain, d.Version+" can be rolled back until "+since(m.now, *d.ObserveUntil)+" UTC, for "+render.Duration(max(0, d.ObserveUntil.Sub(m.now))))
		}
	}
	if v.StaleSince != nil {
		add("stale", bad, t.bad+" since "+since(m.now, *v.StaleSince)+" UTC: a rollback to it would lose what came after")
	}
	if v.RolledBackAt != nil {
		add("rolled back", warn, "at "+since(m.now, *v.RolledBackAt)+" UTC; deploying it again needs --again")
	}
	return out
}

// warned are the warnings of a version and of the database under its job, as status has them; without that of retention where the page
// tells its deadline in a line of its own.
func (m *Model) warned(v reprocess.VersionStatus) []string {
	told, _ := m.retention(v)
	out := make([]string, 0, len(v.Warnings)+len(m.detail.Status.Warnings))
	for _, text := range v.Warnings {
		if told == "" || !strings.HasPrefix(text, "retention ") {
			out = append(out, text)
		}
	}
	return append(out, m.detail.Status.Warnings...)
}

// retention says when unread records are deleted, and whether the replay is there before.
func (m *Model) retention(v reprocess.VersionStatus) (string, tone) {
	at := m.detail.Facts[v.Version].Deadline
	if at == nil || v.Phase != job.Replaying {
		return "", dim
	}
	left := at.Sub(m.now)
	text := "begins to delete what is unread in " + render.Duration(max(0, left)) + ", at " + since(m.now, *at) + " UTC"
	if v.ETASeconds != nil && *v.ETASeconds > left.Seconds() {
		return m.theme.warn + " " + text + ": before the end of the replay", bad
	}
	return text, dim
}
