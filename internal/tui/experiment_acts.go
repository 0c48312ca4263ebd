package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

func (m *Model) openExperiment(string) tea.Cmd {
	if m.page != pageExperiment && m.current() != "" {
		return m.open(pageExperiment, m.current())
	}
	return nil
}

// abVerb is what a key that acts means on the page of the experiment.
func abVerb(verb ledger.Verb) (as ledger.Verb, is bool) {
	switch verb {
	case ledger.Pause, ledger.Resume:
		return ledger.ABPause, true
	case ledger.BatchCancel:
		return ledger.ABStop, true
	case ledger.Promote:
		return ledger.Promote, true
	default:
		return "", false
	}
}

// abAct starts to ask for an act on the experiment of the page; a promote is of the arm that is selected.
func (m *Model) abAct(verb ledger.Verb) tea.Cmd {
	as, is := abVerb(verb)
	switch {
	case m.readOnly || m.detail == nil || m.detail.Experiment == nil:
		return nil
	case !is:
		m.note = "esc leads back to the versions, which this key is about"
		return nil
	}
	if why := m.abRefusal(as); why != "" {
		m.note = why
		return nil
	}
	act := Act{Verb: as, Ref: job.Ref{Job: m.job}}
	if as == ledger.Promote {
		act.Ref, _ = m.arm()
	}
	m.acts++
	m.confirm = &confirm{act: act, stage: stageTyping}
	return nil
}

// abRefusal is why an act makes no sense on the page as it is; empty when it does.
func (m *Model) abRefusal(verb ledger.Verb) string {
	c := m.detail.Experiment
	switch {
	case c.State == abtest.Ended:
		return "the experiment has ended"
	case verb == ledger.ABPause && c.State == abtest.Paused:
		return "it goes on with: kappactl ab resume " + string(m.job) + " --accept REASON"
	case verb == ledger.Promote:
		if _, control := m.arm(); control {
			return "select another arm: the control is live"
		}
	}
	return ""
}

// abHints are the keys of the acts that the page can take.
func (m *Model) abHints() []string {
	if m.readOnly || m.detail == nil || m.detail.Experiment == nil {
		return nil
	}
	var out []string
	for _, h := range []struct {
		verb ledger.Verb
		hint string
	}{{ledger.ABPause, "space pause"}, {ledger.Promote, "p promote"}, {ledger.ABStop, "x stop"}} {
		if m.abRefusal(h.verb) == "" {
			out = append(out, h.hint)
		}
	}
	return out
}

// abEffect is what an act on the experiment does, to confirm.
func abEffect(verb ledger.Verb) string {
	if verb == ledger.ABStop {
		return "Ends the experiment. Every reader reads the live version; the other arms stay as they are."
	}
	return "Every reader reads the control from its next statement on, until the experiment is resumed. Recorded subjects keep their arm for then."
}

// abCommand is the act as the command line has it.
func abCommand(a Act) string {
	word := "pause "
	if a.Verb == ledger.ABStop {
		word = "stop "
	}
	return "kappactl ab " + word + string(a.Ref.Job)
}
