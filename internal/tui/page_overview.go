package tui

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess"
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
	g := grid{columns: []column{
		{title: "job", least: 16, most: 40},
		{title: "live", drop: 5},
		{title: "candidate", drop: 4},
		{title: "standby", drop: 7},
		{title: "team", drop: 9, least: 6, most: 16},
		{title: "phase", least: 16, most: 24},
		{title: "progress", drop: 6, least: 8, most: 20},
		{title: "%", right: true, drop: 6},
		{title: "reads", right: true, drop: 8},
		{title: "lag", right: true},
		{title: "eta", right: true, drop: 3},
		{title: "verdict", drop: 2, least: 18, most: 60},
	}}
	for _, s := range jobs {
		g.rows = append(g.rows, m.overviewRow(s))
	}
	chosen := m.selectedAt(jobs)
	about := m.aboutSelected(jobs[chosen], width, height)
	height -= len(about)
	from := window(chosen, len(jobs), height-1)
	lines := g.lines(m.theme, width, height, from, chosen)
	lines = m.theme.withScroll(lines, from, len(jobs), width)
	for range height - len(lines) {
		lines = append(lines, "")
	}
	return append(lines, about...)
}

// aboutSelected says at the foot of a page that is high enough what the job that is selected waits for.
func (m *Model) aboutSelected(s reprocess.Status, width, height int) []string {
	v := mainVersion(s)
	if v == nil || height < 14 {
		return nil
	}
	var d *reprocess.DeploymentStatus
	for i := range s.Deployments {
		if s.Deployments[i].Version == v.Version {
			d = &s.Deployments[i]
		}
	}
	t := m.theme
	sign, as := t.verdictLook(v.Verdict)
	out := []string{"", t.clip("  "+t.paint(strong, clean(string(s.Job)))+" "+v.Version+"  "+t.paint(dim, clean(s.View))+"  "+t.paint(as, sign+" "+verdictWords(v.Verdict)), width)}
	for _, line := range t.wrap("waits for "+clean(waitsFor(*v, d, Facts{}, m.readOnly)), width-4, 2) {
		out = append(out, "  "+line)
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

func (m *Model) overviewRow(s reprocess.Status) []cell {
	t := m.theme
	v := mainVersion(s)
	row := []cell{
		word(strong, string(s.Job)),
		versionsCell(t, live, those(s, func(v reprocess.VersionStatus) bool { return v.Phase == job.Live })),
		versionsCell(t, candidate, those(s, func(v reprocess.VersionStatus) bool { return candidatePhase(v.Phase) })),
		versionsCell(t, standby, those(s, func(v reprocess.VersionStatus) bool { return v.Phase == job.Standby })),
		word(dim, s.Team),
	}
	if v == nil {
		return append(row, word(dim, "no version"))
	}
	p := versionProgress(*v, Facts{})
	sign, as, _ := t.role(*v)
	verdictSign, verdictTone := t.verdictLook(v.Verdict)
	bar := cell{draw: func(w int) string { return t.thin(as, p.share(), w) }}
	return append(row,
		word(as, sign+" "+phaseWords(*v)),
		bar,
		word(dim, p.percent()),
		word(plain, render.Rate(v.RecordsPerSecond)),
		lagCell(*v),
		word(plain, render.Seconds(v.ETASeconds)),
		word(verdictTone, verdictSign+" "+verdictWords(v.Verdict)+reasonOf(*v)),
	)
}

// reasonOf says why a verdict is not the good one.
func reasonOf(v reprocess.VersionStatus) string {
	if v.Verdict == job.Ready || v.Reason == "" || v.Reason == verdictWords(v.Verdict) {
		return ""
	}
	return ": " + v.Reason
}

func versionsCell(t theme, as tone, versions []string) cell {
	switch len(versions) {
	case 0:
		return word(dim, t.none)
	case 1, 2:
		return word(as, strings.Join(versions, " "))
	}
	return word(as, fmt.Sprintf("%s +%d", versions[0], len(versions)-1))
}

// lagCell is how far behind a version is, in time when that is known.
func lagCell(v reprocess.VersionStatus) cell {
	switch {
	case v.LagRecords == nil:
		return word(warn, render.None)
	case *v.LagRecords == 0:
		return word(plain, "0s")
	case v.LagSeconds != nil && *v.LagSeconds > 0 && v.Phase.Consumes():
		return word(plain, render.Seconds(v.LagSeconds))
	}
	return word(plain, short(v.LagRecords)+" rec")
}
