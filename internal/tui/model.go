package tui

import (
	"errors"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/status"
)

// page names the content of the middle of the window.
type page string

// The pages.
const (
	pageOverview   page = "jobs"
	pageDeployment page = "deployment"
	pageEvents     page = "events"
	pageLayers     page = "layers"
	pageExperiment page = "experiment"
)

// Model is the state of the interface. One goroutine owns it: that of the program.
type Model struct {
	io       commands
	theme    theme
	look     Look
	bindings []binding
	readOnly bool
	place    string   // context and database
	guarded  string   // the name of a protected context; empty: it is not protected
	follow   job.Name // whose deployment's end ends the program; empty is none's

	width, height int
	now           time.Time

	page       page
	back       page // where esc leads to from the events and the layers
	job        job.Name
	generation int
	asked      time.Time // when the look that is out was sent; zero is none

	overview *Overview
	detail   *Detail
	events   []Event
	seen     time.Time // when the data on the page was read
	failure  error     // of the last look, nil when it went well
	curves   map[string]*history

	selected job.Name // in the overview
	order    order    // of the partitions on the page
	focus    string   // the version that a person chose with left and right; empty is the main one
	scroll   int
	filters  map[page]*prompt
	typing   bool // into the filter
	help     bool
	confirm  *confirm
	acts     int     // generation of what was asked for
	note     string  // of the last key, until the next one
	reply    *string // of the terminal, while it comes in; nil when none does

	followed int64 // the newest deployment of the followed job that was seen open; 0 is none
	ended    bool  // it has reached its end
	exit     exit
}

// exit is why the program ends.
type exit string

const (
	exitNone        exit = ""
	exitQuit        exit = "quit"
	exitEnded       exit = "ended"
	exitInterrupted exit = "interrupted"
	exitUnknownJob  exit = "unknown job"
)

// newModel is the interface as it begins: on the page of the job, or on that of all.
func newModel(io commands, o Options) *Model {
	m := &Model{
		io: io, theme: newTheme(o.Look), look: o.Look, readOnly: o.ReadOnly, place: o.Place, guarded: o.Protected,
		bindings: bindings(o.ReadOnly), follow: o.Job, job: o.Job, now: io.now(),
		page: pageOverview, curves: map[string]*history{},
		filters: map[page]*prompt{pageOverview: {}, pageDeployment: {}, pageEvents: {}, pageLayers: {}, pageExperiment: {}},
	}
	if o.Job != "" {
		m.page = pageDeployment
	}
	return m
}

// Init asks for the first page and for what the terminal can show.
func (m *Model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.ask(), m.io.tick(), tea.SetWindowTitle(m.title())}
	if m.look.Color {
		cmds = append(cmds, m.io.askBackground())
	}
	return tea.Batch(cmds...)
}

// Update takes one message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(0, msg.Width), max(0, msg.Height)
	case tea.KeyMsg:
		return m, m.key(msg)
	case ticked:
		m.now = msg.at
		return m, tea.Batch(m.io.tick(), m.askAgain())
	case looked:
		return m, m.take(msg)
	case resolved:
		m.takeResolved(msg)
	case acted:
		return m, m.takeActed(msg)
	}
	return m, nil
}

// ask sends a look for the page as it is now.
func (m *Model) ask() tea.Cmd {
	m.asked = m.now
	return m.io.look(m.generation, m.page, m.job)
}

// askAgain sends one unless the last one is still out.
func (m *Model) askAgain() tea.Cmd {
	if !m.asked.IsZero() && m.now.Sub(m.asked) < 2*lookPatience {
		return nil
	}
	return m.ask()
}

// open goes to another page. Replies meant for the one before it are not taken any more.
func (m *Model) open(p page, name job.Name) tea.Cmd {
	if name != m.job {
		m.detail, m.events, m.focus, m.seen, m.failure, m.order = nil, nil, "", time.Time{}, nil, order{}
		*m.filters[pageDeployment], *m.filters[pageEvents] = prompt{}, prompt{}
	}
	if (p == pageEvents || p == pageLayers || p == pageExperiment) &&
		(m.page == pageOverview || m.page == pageDeployment) {
		m.back = m.page
	}
	m.page, m.job, m.scroll, m.typing = p, name, 0, false
	m.generation++
	return tea.Batch(m.ask(), tea.SetWindowTitle(m.title()))
}

// take shows what a look brought. One that failed keeps what is on the page.
func (m *Model) take(msg looked) tea.Cmd {
	if msg.generation != m.generation {
		return nil
	}
	m.asked, m.failure = time.Time{}, msg.err
	if msg.at.After(m.now) {
		m.now = msg.at
	}
	if msg.err != nil {
		return m.giveUp(msg.err)
	}
	m.seen = msg.at
	if msg.overview != nil {
		m.overview = msg.overview
		m.keepSelection()
		for _, s := range msg.overview.Jobs {
			m.remember(s)
		}
	}
	if msg.detail != nil {
		m.detail = msg.detail
		m.remember(msg.detail.Status)
		m.reorder()
	}
	if msg.events != nil {
		m.takeEvents(msg.events)
	}
	return m.judgeEnd()
}

// giveUp ends the program when what it was started for does not exist; everything else is looked for again.
func (m *Model) giveUp(err error) tea.Cmd {
	var refusal *job.Refusal
	if errors.As(err, &refusal) && m.detail == nil && m.job == m.follow && m.follow != "" {
		m.exit = exitUnknownJob
		return tea.Quit
	}
	return nil
}

func (m *Model) remember(s status.Job) {
	for _, v := range s.Versions {
		if v.Phase.Ended() {
			continue
		}
		name := string(s.Job) + "/" + v.Version
		if m.curves[name] == nil {
			m.curves[name] = &history{}
		}
		m.curves[name].add(v)
	}
}

// curve is the recorded history of a version of the job on the page.
func (m *Model) curve(name job.Name, version string) *history {
	return m.curves[string(name)+"/"+version]
}

// judgeEnd ends the program when the deployment that was followed has reached its end. One that had ended before the
// program began is looked at like everything else. An answer that a person still reads comes first.
func (m *Model) judgeEnd() tea.Cmd {
	if m.detail == nil || m.follow == "" || m.job != m.follow || m.detail.Deployment == nil {
		return nil
	}
	d := *m.detail.Deployment
	switch {
	case !d.State.Ended():
		m.followed, m.ended = d.ID, false
		return nil
	case m.followed == 0 || d.ID < m.followed:
		return nil
	}
	m.ended = true
	return m.leave()
}

// leave ends the program at the end of the deployment, once nothing is being asked or answered.
func (m *Model) leave() tea.Cmd {
	if !m.ended || m.confirm != nil {
		return nil
	}
	m.exit = exitEnded
	return tea.Quit
}
