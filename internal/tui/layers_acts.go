package tui

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

func (m *Model) openLayers(string) tea.Cmd {
	if m.page != pageLayers && m.current() != "" {
		return m.open(pageLayers, m.current())
	}
	return nil
}

// batchAct starts to ask for an act on the layers of the page; a rollback is to the generation that is selected.
func (m *Model) batchAct(verb ledger.Verb) tea.Cmd {
	if m.page == pageExperiment {
		return m.abAct(verb)
	}
	if m.readOnly || m.page != pageLayers || m.layers() == nil {
		return nil
	}
	number, err := job.ParseNumber(m.layers().Version)
	if err != nil {
		return nil
	}
	if why := m.batchRefusal(verb); why != "" {
		m.note = why
		return nil
	}
	m.acts++
	act := Act{Verb: verb, Ref: job.Ref{Job: m.job, Number: number}}
	if verb == ledger.BatchRollback {
		act.Generation = m.selectedGeneration().Generation
	}
	m.confirm = &confirm{act: act, stage: stageTyping}
	return nil
}

// batchRefusal is why an act makes no sense on the page as it is; empty when it does.
func (m *Model) batchRefusal(verb ledger.Verb) string {
	l := m.layers()
	switch {
	case verb == ledger.BatchRun && l.Building != nil:
		return fmt.Sprintf("generation %d is being computed", l.Building.Generation)
	case verb == ledger.BatchCancel && l.Building == nil:
		return "no run is under way"
	case verb != ledger.BatchRollback:
		return ""
	}
	if g := m.selectedGeneration(); g == nil || g.State != generation.Kept {
		return "select a generation that is kept: readers can be shown that again"
	}
	return ""
}

// batchHints are the keys of the acts that the page can take.
func (m *Model) batchHints() []string {
	if m.readOnly || m.layers() == nil {
		return nil
	}
	var out []string
	for _, h := range []struct {
		verb ledger.Verb
		hint string
	}{{ledger.BatchRun, "n run"}, {ledger.BatchCancel, "x cancel"}, {ledger.BatchRollback, "r rollback"}} {
		if m.batchRefusal(h.verb) == "" {
			out = append(out, h.hint)
		}
	}
	return out
}

// batchEffect describes an act on the layers that is to be confirmed.
func (m *Model) batchEffect(a Act) string {
	version := a.Ref.Number.String()
	switch a.Verb {
	case ledger.BatchRun:
		return "Computes a generation of " + version +
			" up to this moment, compares it with what readers see, and shows it. Readers go on meanwhile."
	case ledger.BatchCancel:
		return "Ends the run under way without showing its generation. Readers see no change."
	case ledger.BatchRollback:
		return fmt.Sprintf("Readers see generation %d of %s again, with all that came since its run began. "+
			"A run under way is cancelled, and the schedule is paused.", a.Generation, version)
	default:
		return ""
	}
}

// command is the act as the command line has it: kappactl batch VERB JOB.
func batchCommand(a Act) string {
	words := "kappactl batch "
	switch a.Verb {
	case ledger.BatchRun:
		words += "run " + string(a.Ref.Job)
	case ledger.BatchCancel:
		words += "cancel " + string(a.Ref.Job)
	default:
		words += fmt.Sprintf("rollback %s %d", a.Ref.Job, a.Generation)
	}
	return words + " " + a.Ref.Number.String()
}
