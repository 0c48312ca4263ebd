package tui

import (
	"strings"
	"time"

	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/status"
)

// headerLine says where one is and how fresh what one sees is.
func (m *Model) headerLine() string {
	t := m.theme
	left := " " + t.paint(strong, "kappactl")
	switch m.page {
	case pageOverview:
		left += "  " + m.jobsLine()
	case pageDeployment:
		left += "  " + t.paint(strong, clean(string(m.job)))
	case pageEvents:
		left += "  " + t.paint(strong, clean(string(m.job))) + t.paint(dim, "  events")
	case pageLayers:
		left += "  " + t.paint(strong, clean(string(m.job))) + t.paint(dim, "  layers")
	case pageExperiment:
		left += "  " + t.paint(strong, clean(string(m.job))) + t.paint(dim, "  experiment")
	}
	if m.page != pageOverview && m.detail != nil {
		about := m.detail.Status.View
		if team := m.detail.Status.Team; team != "" {
			about += "  " + t.dot + "  " + team
		}
		about = t.paint(dim, clean(about))
		if text, as := scheduleWords(m.now, m.detail.Schedule); text != "" && m.page != pageLayers {
			about += t.paint(dim, "  "+t.dot+"  ") + t.paint(as, text)
		}
		right := m.freshness(true) + " "
		if full := left + "  " + about; cells(full)+cells(right)+2 <= m.width {
			left = full
		}
		archive := m.archiveWords()
		if full := left + t.paint(dim, "  "+t.dot+"  ") + archive; archive != "" && cells(full)+cells(right)+2 <= m.width {
			left = full
		}
	}
	right := m.freshness(true) + " "
	if full := left + t.paint(dim, "  "+t.dot+"  "+clean(m.place)); m.place != "" &&
		cells(full)+cells(right)+2 <= m.width {
		left = full
	}
	if cells(left)+cells(right)+2 > m.width {
		right = m.freshness(false) + " "
	}
	return t.ends(left, right, m.width)
}

// archiveWords is how far the archive of the job's topics is behind, on the pages without a line about it; empty
// without an archive.
func (m *Model) archiveWords() string {
	t, a := m.theme, m.detail.Archive
	switch {
	case a == nil || m.page == pageLayers:
		return ""
	case a.Troubled:
		return t.paint(bad, "archive in trouble")
	case a.Behind > 0:
		return t.paint(dim, "archive "+render.Plural(a.Behind, "offset")+" behind")
	}
	return t.paint(dim, "archive whole")
}

// scheduleWords is when the next batch run is due, or why none is; empty without a schedule.
func scheduleWords(now time.Time, s *schedule.Status) (text string, as tone) {
	switch {
	case s == nil:
		return "", plain
	case s.State == schedule.Paused:
		return "schedule paused", warn
	case s.State == schedule.NotLambda:
		return "no batch runs: live is not lambda", warn
	case s.NextAt == nil:
		return "schedule not seen by an agent yet", dim
	}
	next := "next batch run in " + ago(*s.NextAt, now)
	if s.State == schedule.Late {
		return "batch late, " + next, bad
	}
	return next, dim
}

// jobsLine is how many jobs there are, and how many of them want an act or a look.
func (m *Model) jobsLine() string {
	t := m.theme
	if m.overview == nil {
		return t.paint(dim, "jobs")
	}
	shown, all := int64(len(m.jobs())), int64(len(m.overview.Jobs))
	text := render.Plural(all, "job")
	if shown < all {
		text = render.Count(shown) + " of " + text
	}
	text = t.paint(dim, text)
	var acts, looks int64
	for _, s := range m.overview.Jobs {
		if worst := m.worst(s); worst == bad {
			acts++
		} else if worst == warn {
			looks++
		}
	}
	if acts > 0 {
		text += "  " + t.paint(bad, t.bad+" "+render.Count(acts))
	}
	if looks > 0 {
		text += "  " + t.paint(warn, t.warn+" "+render.Count(looks))
	}
	return text
}

// worst is the tone of what is worst among the versions of a job.
func (m *Model) worst(s status.Job) tone {
	worst := plain
	for _, v := range s.Versions {
		if _, as, _, _ := m.theme.health(v.Verdict, v.ReasonCode, v.Reason); stopped(s, v.Version) != nil {
			worst = bad
		} else if as == bad || as == warn && worst != bad {
			worst = as
		}
	}
	return worst
}

// freshness is how many agents are alive, or how old the data is when the last look failed, and the clock where there
// is room for it.
func (m *Model) freshness(roomy bool) string {
	t := m.theme
	clock := ""
	if roomy {
		clock = "  " + t.paint(dim, m.now.UTC().Format("15:04:05")+" UTC")
	}
	agents, known := m.agents()
	switch {
	case m.stale():
		return t.paint(warn, t.warn+" "+m.age()+", reconnecting") + clock
	case known && agents == 0:
		return t.paint(bad, t.warn+" no agent is alive") + clock
	case known:
		return t.paint(dim, render.Plural(int64(agents), "agent")) + clock
	}
	return strings.TrimSpace(clock)
}

// stale reports whether the page is out of date: the last query failed, or none has returned for long.
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
