package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// stage is how far an act is.
type stage int

const (
	stageResolving stage = iota // which version it is about
	stageTyping                 // the job's name, to confirm
	stageDoing                  // an agent does it
	stageDone                   // it answered
)

// confirm is an act that is being asked for.
type confirm struct {
	stage  stage
	act    Act
	typed  prompt
	answer ledger.Answer
	err    error
	wrong  bool      // what was typed is not the name that was asked for
	named  bool      // the job's name was typed, and the name of the protected context is asked for
	asked  time.Time // when the agents were asked
}

// begin starts to ask for an act on the job of the page: on the version that was chosen with left and right, else on
// the one that the command without a version would take.
func (m *Model) begin(verb ledger.Verb) tea.Cmd {
	name := m.current()
	switch {
	case m.readOnly || name == "":
		return nil
	case m.page == pageExperiment:
		return m.abAct(verb)
	case m.page == pageLayers && verb == ledger.BatchRollback:
		return m.batchAct(verb)
	case m.page == pageLayers:
		m.note = "esc leads back to the versions, which this key is about"
		return nil
	}
	m.acts++
	m.confirm = &confirm{act: Act{Verb: verb, Ref: job.Ref{Job: name}}}
	if m.page == pageDeployment && m.focus != "" {
		if n, err := job.ParseNumber(m.focus); err == nil {
			m.confirm.act.Ref.Number, m.confirm.stage = n, stageTyping
			return nil
		}
	}
	return m.io.resolve(m.acts, name, verb)
}

// rollback returns the verb of the key r: another generation on the page of layers, else another version.
func (m *Model) rollback() ledger.Verb {
	if m.page == pageLayers {
		return ledger.BatchRollback
	}
	return ledger.Rollback
}

// pauseOrResume returns the verb of the space key: resume when the version on the page is paused.
func (m *Model) pauseOrResume() ledger.Verb {
	v := m.focused()
	if m.page == pageOverview {
		if s, ok := m.status(); ok {
			v = shown(s)
		}
	}
	if v != nil && v.Paused {
		return ledger.Resume
	}
	return ledger.Pause
}

func (m *Model) takeResolved(msg resolved) {
	if msg.generation != m.acts || m.confirm == nil || m.confirm.stage != stageResolving {
		return
	}
	if msg.err != nil {
		m.confirm.stage, m.confirm.err = stageDone, msg.err
		return
	}
	m.confirm.act, m.confirm.stage = msg.act, stageTyping
}

func (m *Model) takeActed(msg acted) tea.Cmd {
	if msg.generation != m.acts || m.confirm == nil || m.confirm.stage != stageDoing {
		return nil
	}
	m.confirm.stage, m.confirm.answer, m.confirm.err = stageDone, msg.answer, msg.err
	return m.ask()
}

// wanted is the name to type next, and whose it is: the job's, then that of a protected context.
func (m *Model) wanted() (name, of string) {
	if m.confirm.named {
		return m.guarded, "context"
	}
	return string(m.confirm.act.Ref.Job), "job"
}

// pressConfirm takes a key while an act is asked for.
func (m *Model) pressConfirm(name, typed string) tea.Cmd {
	c := m.confirm
	if name == "esc" || c.stage == stageDone && (name == "enter" || name == "q" || name == "space") {
		if c.stage == stageDoing {
			m.note = "an agent still answers the request: " + c.act.Command()
		}
		m.confirm = nil
		return m.leave()
	}
	if c.stage != stageTyping {
		return nil
	}
	if name != "enter" {
		c.wrong = false
		c.typed.press(name, typed)
		return nil
	}
	switch word, _ := m.wanted(); {
	case c.typed.text != word:
		c.wrong = true
		return nil
	case !c.named && m.guarded != "" && c.act.Verb.ReadersNotice():
		c.named, c.typed = true, prompt{}
		return nil
	}
	c.stage, c.asked = stageDoing, m.now
	return m.io.do(m.acts, c.act)
}
