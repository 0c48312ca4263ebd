package tui

import (
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/status"
)

// margin is where values begin: labels stand to the left of it.
const margin = 16

// The smallest body that shows both versions; a smaller one shows a few lines about one of them.
const (
	narrowest = 48
	lowest    = 6
)

// room is how much each part of the page gets. It follows from the size of the window alone, so that nothing moves
// while numbers change.
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
		r.facts, r.air, r.waits, r.chart, r.trends, r.checks, r.notes = 10, true, 2, 8, true, 10, 6
	case height >= 32:
		r.facts, r.air, r.waits, r.chart, r.trends, r.checks, r.notes = 9, true, 3, 4, true, 6, 4
	case height >= 24:
		r.facts, r.air, r.waits, r.trends, r.checks, r.notes = 6, true, 3, true, 3, 3
	case height >= 18:
		r.facts, r.air, r.waits, r.trends, r.checks, r.notes = 5, true, 2, true, 1, 2
	case height >= 13:
		r.facts, r.trends, r.checks = 4, true, 1
	}
	r.columns = width >= 150 && height >= 32
	return r
}

// deploymentPage is one job: how far the version in focus is, what it waits for, both versions, and the partitions.
func (m *Model) deploymentPage(width, height int) []string {
	v := m.focused()
	switch {
	case m.detail == nil:
		return m.waiting()
	case v == nil:
		return []string{"", "  no version yet"}
	}
	if width < narrowest || height < lowest {
		return m.compactPage(*v, width, height)
	}
	r := plan(width, height)
	above := m.abovePartitions(r, *v)
	left := height - len(above)
	if r.columns {
		return append(above, m.columnsPart(r, *v, left)...)
	}
	return append(above, m.partitionsPart(*v, width, left)...)
}

// abovePartitions is the page down to where the partitions begin.
func (m *Model) abovePartitions(r room, v status.Version) []string {
	var out []string
	add := func(part []string) {
		out = append(out, part...)
		if len(part) > 0 && r.air {
			out = append(out, "")
		}
	}
	add(append(m.progressPart(r, v), m.waitsPart(r, v)...))
	add(m.versionsPart(r))
	if r.columns {
		return out
	}
	trends, rest := m.trendsPart(r, v, r.width), append(m.checksPart(r, v, r.width), m.notesPart(r, v)...)
	if r.chart == 0 {
		trends, rest = append(trends, rest...), nil
	}
	add(trends)
	add(rest)
	return out
}

// partitionsInSight is how many rows of partitions the window has room for.
func (m *Model) partitionsInSight() int {
	v, height := m.focused(), m.bodyHeight()
	if v == nil || m.width < narrowest || height < lowest {
		return 0
	}
	return max(0, height-len(m.abovePartitions(plan(m.width, height), *v))-1)
}

// compactPage shows the essentials of the version in focus, for a window in which nothing else fits.
func (m *Model) compactPage(v status.Version, width, height int) []string {
	t := m.theme
	sign, as, _ := t.role(v)
	verdictSign, verdictTone, verdict, _ := t.health(v.Verdict, v.ReasonCode, v.Reason)
	p := versionProgress(v, m.detail.Facts[v.Version])
	words, wordsTone := outlook(m.now, v, latest(m.curve(m.job, v.Version).made()))
	out := []string{
		t.paint(as, sign) + " " + t.paint(strong, v.Version) + " " + t.paint(as, phaseWords(v)),
		t.paint(verdictTone, verdictSign+" "+verdict),
		p.percent() + " " + t.bar(as, p.share(), min(40, width-cells(p.percent())-1)),
		behind(v.LagRecords, v.LagSeconds),
		t.paint(wordsTone, words),
	}
	for i := range out {
		out[i] = t.clip(out[i], width)
	}
	return append(out, t.wrap("waits for "+m.waitsFor(v), width, height-len(out))...)
}

// columnsPart puts the partitions at the left, and curves, checks and notes at the right of a wide window.
func (m *Model) columnsPart(r room, v status.Version, height int) []string {
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

// oneLine is how wide a window is in which the bar and what it means stand on one line.
const oneLine = 150

// progressPart is the bar over all partitions of the version in focus, whether it is caught up, and when it will be.
func (m *Model) progressPart(r room, v status.Version) []string {
	if v.Phase.Ended() {
		return nil
	}
	t := m.theme
	p := versionProgress(v, m.detail.Facts[v.Version])
	_, as, _ := t.role(v)
	text, wordsTone := outlook(m.now, v, latest(m.curve(m.job, v.Version).made()))
	words := t.paint(wordsTone, text)
	counts := "unknown"
	if p.known {
		counts = short(&p.done) + " of " + short(&p.total)
	}
	barWidth := min(60, max(0, r.width-margin-28))
	if r.width < oneLine && r.facts < 4 {
		barWidth = 8
	}
	line := "  " + t.fit(t.paint(dim, "PROGRESS ")+t.paint(strong, v.Version), margin-2, false) +
		t.bar(as, p.share(), barWidth) + "  " + t.paint(strong, t.fit(p.percent(), 6, true)) + "  "
	switch {
	case r.width >= oneLine:
		return []string{line + t.paint(dim, t.fit(counts, 16, false)) + "  " + words}
	case r.facts < 4:
		return []string{t.clip(line+words, r.width)}
	}
	return []string{line + t.paint(dim, counts), t.clip(t.label("")+words, r.width)}
}

// waitsPart has the same height whatever there is to say, unless that is uncommonly much.
func (m *Model) waitsPart(r room, v status.Version) []string {
	t := m.theme
	_, as, _, _ := t.health(v.Verdict, v.ReasonCode, v.Reason)
	switch {
	case stopped(m.detail.Status, v.Version) != nil:
		as = bad
	case as != bad && as != warn:
		as = plain
	}
	label := "waits for"
	var out []string
	for i, line := range t.wrap(m.waitsFor(v), r.width-margin, r.waits) {
		if i > 0 {
			label = ""
		}
		out = append(out, t.label(label)+t.paint(as, line))
	}
	return append(out, make([]string, max(0, min(2, r.waits)-len(out)))...)
}

// waitsFor says in words what a version of the job on the page waits for.
func (m *Model) waitsFor(v status.Version) string {
	return clean(waitsFor(v, deploymentOf(m.detail.Status, v.Version), m.detail.Facts[v.Version], m.readOnly))
}

// stopped is the open deployment of a version when it went no further and says why: checks that failed, a refusal. Else
// nil.
func stopped(s status.Job, version string) *status.Deployment {
	d := deploymentOf(s, version)
	if d == nil || d.Message == "" || d.ExitCode == nil || *d.ExitCode == int(job.ExitOK) {
		return nil
	}
	return d
}

// deploymentOf is the open deployment of a version; nil when it has none.
func deploymentOf(s status.Job, version string) *status.Deployment {
	for i := range s.Deployments {
		if s.Deployments[i].Version == version {
			return &s.Deployments[i]
		}
	}
	return nil
}

// notesPart lists what is out of the ordinary: retention, dead letters, warnings, windows that end.
func (m *Model) notesPart(r room, v status.Version) []string {
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
		add("dead letters", warn, t.warn+" "+render.Plural(v.DeadLetters, "record")+" of "+short(&v.Records)+
			" could not be processed")
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
			add("window", plain, d.Version+" can be rolled back until "+since(m.now, *d.ObserveUntil)+" UTC, for "+
				render.Duration(max(0, d.ObserveUntil.Sub(m.now)).Truncate(time.Second)))
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

// warned are the warnings of a version and of the database under its job, as status has them; without that of retention
// where the page tells its deadline in a line of its own.
func (m *Model) warned(v status.Version) []string {
	told, _ := m.retention(v)
	out := make([]string, 0, len(v.Warnings)+len(m.detail.Status.Warnings))
	for _, r := range v.WarningReasons {
		if told == "" || !r.Is(reason.CodeRetention, reason.CodeRetentionUnknown) {
			out = append(out, r.Text())
		}
	}
	return append(out, m.detail.Status.Warnings...)
}

// retention says when unread records are deleted, and whether they are read before.
func (m *Model) retention(v status.Version) (string, tone) {
	at := m.detail.Facts[v.Version].Deadline
	if at == nil || v.Phase != job.Replaying {
		at = v.RetentionDeadline
	}
	if at == nil || v.Phase.Ended() {
		return "", dim
	}
	left := at.Sub(m.now)
	text := "begins to delete what is unread in " + render.Duration(max(0, left).Truncate(time.Second)) + ", at " +
		since(m.now, *at) + " UTC"
	if v.ETASeconds != nil && *v.ETASeconds > left.Seconds() {
		return m.theme.warn + " " + text + ": before all of it is read", bad
	}
	return text, dim
}
