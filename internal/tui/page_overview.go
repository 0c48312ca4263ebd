package tui

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// overviewPage is all jobs, one a line.
func (m *Model) overviewPage(width, height int) []string {
	if m.overview == nil {
		return m.waiting()
	}
	jobs := m.jobs()
	switch {
	case len(m.overview.Jobs) == 0:
		return []string{"", "  no job yet: " + m.theme.paint(strong, "kappactl deploy FILE")}
	case len(jobs) == 0:
		return []string{"", "  " + m.theme.paint(dim, fmt.Sprintf("none of %d jobs matches", len(m.overview.Jobs)))}
	}
	g := grid{columns: overviewColumns(width)}
	for _, s := range jobs {
		g.rows = append(g.rows, m.overviewRow(s))
	}
	chosen := m.selectedAt(jobs)
	about := m.aboutSelected(jobs[chosen], width, height)
	height -= len(about)
	from := window(chosen, len(jobs), height-1)
	lines := g.lines(m.theme, width, height, from, chosen)
	for range height - len(lines) {
		lines = append(lines, "")
	}
	return append(lines, about...)
}

// overviewColumns are those of a window of this width: the job, its phase and its lag leave last.
func overviewColumns(width int) []column {
	candidate := "candidate"
	if width < 110 {
		candidate = "cand."
	}
	bar := min(24, max(8, width/16))
	return []column{
		{title: "job", least: 16, most: 40, tight: 4},
		{title: "live", drop: 5},
		{title: candidate, drop: 4},
		{title: "standby", drop: 7},
		{title: "team", drop: 9, least: 6, most: 16},
		{title: "phase", width: 14, least: 14, most: 24, tight: 3},
		{title: "progress", drop: 6, least: bar, most: bar},
		{title: "%", right: true, drop: 6, width: 6},
		{title: "reads", right: true, drop: 8, width: 8},
		{title: "lag", right: true, width: 8, least: 8, most: 12, tight: 6},
		{title: "eta", right: true, drop: 3, width: 6},
		{title: "verdict", drop: 2, width: 12, least: 12, most: 200, rest: true},
	}
}

// aboutLines is how high the part about the selected job is, whatever there is to say, so that nothing moves with the
// selection.
const aboutLines = 6

// aboutSelected says at the foot of a page that is high enough what the job that is selected waits for, and what else
// is wrong with it.
func (m *Model) aboutSelected(s status.Job, width, height int) []string {
	v := shown(s)
	if height < 14 {
		return nil
	}
	out := make([]string, 0, aboutLines)
	if v == nil {
		return append(out, make([]string, aboutLines)...)
	}
	t := m.theme
	sign, as, words, _ := t.health(v.Verdict, v.ReasonCode, v.Reason)
	if stopped(s, v.Version) != nil {
		sign, as, words = t.bad, bad, "stopped"
	}
	out = append(out, "", t.clip("  "+t.paint(strong, clean(string(s.Job)))+" "+v.Version+"  "+t.paint(as, sign+" "+words)+
		"  "+t.paint(dim, clean(s.View)), width))
	for _, line := range t.wrap("waits for "+clean(waitsFor(*v, deploymentOf(s, v.Version), Facts{}, m.readOnly)), width-4,
		2) {
		out = append(out, "  "+line)
	}
	for _, line := range m.besidesOf(s, *v) {
		if len(out) < aboutLines {
			out = append(out, t.clip("  "+line, width))
		}
	}
	return append(out, make([]string, aboutLines-len(out))...)
}

// besidesOf are the other versions of a job that want a look, then dead letters and warnings of the one that its line
// is about.
func (m *Model) besidesOf(s status.Job, v status.Version) []string {
	t := m.theme
	var out []string
	for _, o := range s.Versions {
		if o.Version == v.Version || !t.troubled(o) {
			continue
		}
		sign, as, words, why := t.health(o.Verdict, o.ReasonCode, o.Reason)
		out = append(out, t.paint(as, sign+" "+o.Version+" "+phaseWords(o)+": "+words+clean(why)))
	}
	if v.DeadLetters > 0 {
		out = append(out, t.paint(warn, t.warn+" "+render.Plural(v.DeadLetters, "dead letter")+" of "+v.Version))
	}
	for _, text := range v.Warnings {
		out = append(out, t.paint(warn, t.warn+" "+clean(text)))
	}
	return out
}

// window is the first row shown so that the chosen one is in sight.
func window(chosen, rows, height int) int {
	if height <= 0 || rows <= height {
		return 0
	}
	return max(0, min(chosen-height/2, rows-height))
}

func (m *Model) overviewRow(s status.Job) []cell {
	t := m.theme
	v := shown(s)
	row := []cell{
		word(strong, string(s.Job)),
		m.versionsCell(s, live, func(v status.Version) bool { return v.Phase == job.Live }),
		m.versionsCell(s, candidate, func(v status.Version) bool { return ledger.Candidate(v.Phase) }),
		m.versionsCell(s, standby, func(v status.Version) bool { return v.Phase == job.Standby }),
		word(dim, s.Team),
	}
	if v == nil {
		return append(row, word(dim, "no version"))
	}
	p := versionProgress(*v, Facts{})
	sign, as, _ := t.role(*v)
	verdictSign, verdictTone, verdict, why := t.health(v.Verdict, v.ReasonCode, v.Reason)
	if d := stopped(s, v.Version); d != nil {
		verdictSign, verdictTone, verdict, why = t.bad, bad, "stopped", ": "+withoutExamples(d.Message)
	}
	bar := cell{draw: func(w int) string { return t.thin(as, p.share(), w) }}
	return append(row,
		word(as, sign+" "+phaseWords(*v)),
		bar,
		word(dim, p.percent()),
		word(plain, render.Rate(v.RecordsPerSecond)),
		lagCell(*v),
		word(plain, seconds(v.ETASeconds)),
		reasoned(verdictTone, verdictSign+" "+verdict, why),
	)
}

// versionsCell names the newest two versions of a kind, or the newest and how many more there are. One that wants a
// look, and which the rest of the line is not about, is marked.
func (m *Model) versionsCell(s status.Job, as tone, is func(status.Version) bool) cell {
	versions := those(s, is)
	about, mark := shown(s), ""
	for _, v := range s.Versions {
		if is(v) && v.Version != about.Version && m.theme.troubled(v) {
			sign, trouble, _, _ := m.theme.health(v.Verdict, v.ReasonCode, v.Reason)
			mark, as = " "+sign, trouble
			break
		}
	}
	switch len(versions) {
	case 0:
		return word(dim, render.None)
	case 1:
		return word(as, versions[0]+mark)
	case 2:
		return word(as, strings.Join(versions, " ")+mark)
	}
	return word(as, fmt.Sprintf("%s +%d%s", versions[0], len(versions)-1, mark))
}

// lagCell is how far behind a version is, in time when that is known.
func lagCell(v status.Version) cell {
	switch {
	case v.LagRecords == nil:
		return word(warn, render.None)
	case *v.LagRecords == 0:
		return word(plain, "0s")
	case v.LagSeconds != nil && *v.LagSeconds > 0 && v.Phase.Consumes():
		return word(plain, seconds(v.LagSeconds))
	case v.LagSeconds != nil && v.Phase.Consumes():
		return word(plain, "<1s") // and not in records: the unit stays
	}
	return cell{text: brief(*v.LagRecords) + " rec", brief: brief(*v.LagRecords)}
}
