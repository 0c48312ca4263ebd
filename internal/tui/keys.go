package tui

import (
	"slices"
	"strings"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// binding is the action of keys, with its text in the help.
type binding struct {
	key.Binding
	run func(m *Model, name string) tea.Cmd
}

// bindings are all keys, in the order of the help. Those that act are off in a window to look only.
func bindings(readOnly bool) []binding {
	bind := func(run func(*Model, string) tea.Cmd, shown, does string, keys ...string) binding {
		return binding{key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, does)), run}
	}
	act := func(verb func(*Model) ledger.Verb, shown, does string) binding {
		b := bind(func(m *Model, _ string) tea.Cmd { return m.begin(verb(m)) }, shown, does, shown)
		b.SetEnabled(!readOnly)
		return b
	}
	batch := func(verb ledger.Verb, shown, does string) binding {
		b := bind(func(m *Model, _ string) tea.Cmd { return m.batchAct(verb) }, shown, does, shown)
		b.SetEnabled(!readOnly)
		return b
	}
	always := func(verb ledger.Verb) func(*Model) ledger.Verb {
		return func(*Model) ledger.Verb { return verb }
	}
	return []binding{
		bind((*Model).move, "↑ ↓  j k", "select a job or an event, scroll partitions", "up", "down", "j", "k"),
		bind((*Model).move, "← →  h l", "show another version beside live: newer, older", "left", "right", "h", "l"),
		bind((*Model).enter, "enter", "open the job", "enter"),
		bind((*Model).escape, "esc", "clear the filter, then back", "esc"),
		bind((*Model).openEvents, "e", "events of the job", "e"),
		bind((*Model).openLayers, "b", "layers of the job: batch generations and the speed layer", "b"),
		bind((*Model).openExperiment, "t", "experiment of the job: readers split between versions", "t"),
		bind((*Model).beginFilter, "/", "filter jobs, partitions or events: all words must match", "/"),
		bind((*Model).move, "g G", "first, last; pgup and pgdn by half a page",
			"g", "G", "home", "end", "pgup", "pgdown", "ctrl+u", "ctrl+d", "ctrl+b", "ctrl+f"),
		act(always(ledger.Promote), "p", "promote: readers see the candidate, or the arm selected"),
		act((*Model).rollback, "r", "roll back: readers see the version before, or the generation selected"),
		act((*Model).pauseOrResume, "space", "pause the candidate or the experiment, or resume what is paused"),
		act(always(ledger.Abort), "a", "abort the candidate"),
		batch(ledger.BatchRun, "n", "on the page of layers: a new batch run"),
		batch(ledger.BatchCancel, "x", "on the page of layers: cancel the run under way; of the experiment: end it"),
		bind((*Model).openHelp, "?", "this help", "?"),
		bind((*Model).quit, "q", "quit; deployments continue", "q"),
	}
}

// pressed is a key by its name.
type pressed string

func (p pressed) String() string { return string(p) }

// press takes a key. typed is its text when it prints.
func (m *Model) press(name, typed string) tea.Cmd {
	m.note = ""
	switch {
	case name == "ctrl+c":
		m.exit = exitInterrupted
		return tea.Quit
	case name == "ctrl+z":
		return tea.Suspend
	case name == "ctrl+l":
		return tea.ClearScreen
	case m.confirm != nil:
		return m.pressConfirm(name, typed)
	case m.help:
		m.help = false
		return nil
	case m.typing:
		m.pressFilter(name, typed)
		return nil
	}
	for _, b := range m.bindings {
		if key.Matches(pressed(name), b.Binding) {
			return b.run(m, name)
		}
	}
	return nil
}

func (m *Model) quit(string) tea.Cmd {
	m.exit = exitQuit
	return tea.Quit
}

func (m *Model) openHelp(string) tea.Cmd {
	m.help = true
	return nil
}

func (m *Model) beginFilter(string) tea.Cmd {
	m.typing = true
	return nil
}

func (m *Model) enter(string) tea.Cmd {
	if m.page == pageOverview && m.current() != "" {
		return m.open(pageDeployment, m.current())
	}
	return nil
}

func (m *Model) openEvents(string) tea.Cmd {
	if m.page != pageEvents && m.current() != "" {
		return m.open(pageEvents, m.current())
	}
	return nil
}

// escape clears the filter, then goes back.
func (m *Model) escape(string) tea.Cmd {
	if f := m.filters[m.page]; f.text != "" {
		f.text, m.scroll = "", 0
		return nil
	}
	switch m.page {
	case pageEvents, pageLayers, pageExperiment:
		if m.back == pageOverview {
			m.selected = m.job
		}
		return m.open(m.back, m.job)
	case pageDeployment:
		m.selected = m.job
		return m.open(pageOverview, m.job)
	case pageOverview:
	}
	return nil
}

// pressFilter takes a key while the filter is typed.
func (m *Model) pressFilter(name, typed string) {
	f := m.filters[m.page]
	switch name {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, f.text = false, ""
	default:
		f.press(name, typed)
	}
	m.scroll = 0
	m.keepSelection()
}

func (m *Model) paste(text string) {
	switch {
	case m.confirm != nil && m.confirm.stage == stageTyping:
		m.confirm.typed.paste(text)
	case m.typing:
		m.filters[m.page].paste(text)
		m.keepSelection()
	}
}

// move takes the keys that move the selection, the list or the choice of a version.
func (m *Model) move(name string) tea.Cmd {
	step, far := 0, 1<<20
	switch name {
	case "up", "k":
		step = -1
	case "down", "j":
		step = 1
	case "pgup", "ctrl+u", "ctrl+b":
		step = -max(1, m.bodyHeight()/2)
	case "pgdown", "ctrl+d", "ctrl+f":
		step = max(1, m.bodyHeight()/2)
	case "home", "g":
		step = -far
	case "end", "G":
		step = far
	case "left", "h":
		m.turn(-1)
		return nil
	case "right", "l":
		m.turn(1)
		return nil
	}
	if m.page == pageOverview {
		m.choose(step)
		return nil
	}
	last := m.lastScroll()
	m.scroll = max(0, min(min(m.scroll, last)+step, last))
	return nil
}

// lastScroll is how far the list on the page scrolls: events are selected, partitions move until the last one is in
// sight.
func (m *Model) lastScroll() int {
	switch {
	case m.page == pageEvents:
		return max(0, len(m.shownEvents())-1)
	case m.page == pageLayers && m.layers() != nil:
		return max(0, len(m.layers().Generations)-1)
	case m.page == pageExperiment && m.detail != nil && m.detail.Experiment != nil:
		return max(0, len(m.detail.Experiment.Arms)-1)
	case m.page == pageDeployment && m.focused() != nil:
		return max(0, len(m.shownPartitions(*m.focused()))-m.partitionsInSight())
	}
	return 0
}

// choose moves the selection among the jobs shown.
func (m *Model) choose(step int) {
	jobs := m.jobs()
	if len(jobs) == 0 {
		return
	}
	at := max(0, min(m.selectedAt(jobs)+step, len(jobs)-1))
	m.selected = jobs[at].Job
}

func (m *Model) selectedAt(jobs []status.Job) int {
	for i, s := range jobs {
		if s.Job == m.selected {
			return i
		}
	}
	return 0
}

// keepSelection selects the first job when the one selected is not shown any more.
func (m *Model) keepSelection() {
	if jobs := m.jobs(); len(jobs) > 0 {
		m.selected = jobs[m.selectedAt(jobs)].Job
	}
}

// turn chooses the next version of the job, newest first.
func (m *Model) turn(step int) {
	if m.page != pageDeployment || m.detail == nil || len(m.detail.Status.Versions) == 0 {
		return
	}
	versions := m.detail.Status.Versions
	at := max(0, slices.IndexFunc(versions, func(v status.Version) bool { return v.Version == m.focused().Version }))
	m.focus = versions[(at+step+len(versions))%len(versions)].Version
	m.scroll = 0
	m.reorder()
}

// current is the job that a key is about.
func (m *Model) current() job.Name {
	if m.page == pageOverview {
		if len(m.jobs()) == 0 {
			return ""
		}
		return m.selected
	}
	return m.job
}

// jobs are those of the overview that the filter leaves.
func (m *Model) jobs() []status.Job {
	if m.overview == nil {
		return nil
	}
	if m.filters[pageOverview].text == "" {
		return m.overview.Jobs
	}
	var out []status.Job
	for _, s := range m.overview.Jobs {
		words := []string{string(s.Job), s.Team, s.View}
		for _, v := range s.Versions {
			_, _, health, why := m.theme.health(v.Verdict, v.ReasonCode, v.Reason)
			words = append(words, v.Version, string(v.Phase), phaseWords(v), health, why)
		}
		if m.matches(strings.Join(words, " ")) {
			out = append(out, s)
		}
	}
	return out
}

// matches reports whether every word of the filter is in a text.
func (m *Model) matches(text string) bool {
	text = strings.ToLower(text)
	for _, w := range strings.Fields(strings.ToLower(m.filters[m.page].text)) {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// status is the newest known one of the job that a key is about.
func (m *Model) status() (status.Job, bool) {
	if m.page != pageOverview {
		if m.detail == nil {
			return status.Job{}, false
		}
		return m.detail.Status, true
	}
	for _, s := range m.jobs() {
		if s.Job == m.selected {
			return s, true
		}
	}
	return status.Job{}, false
}

// focused is the version whose partitions and curves are shown.
func (m *Model) focused() *status.Version {
	if m.detail == nil {
		return nil
	}
	if v := m.detail.Status.Find(m.focus); v != nil {
		return v
	}
	return shown(m.detail.Status)
}
