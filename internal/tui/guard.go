package tui

import (
	"runtime/debug"

	tea "github.com/charmbracelet/bubbletea"
)

// guard turns a panic of the model into the end of the program, so that the terminal is restored and the caller, who
// knows how to print errors, gets one.
type guard struct {
	model tea.Model
	fault *FaultError
}

func (g *guard) Init() tea.Cmd { return g.guarded(g.model.Init()) }

func (g *guard) Update(msg tea.Msg) (next tea.Model, cmd tea.Cmd) {
	defer func() {
		if r := recover(); r != nil {
			next, cmd = g, g.fail(r)
		}
	}()
	if f, ok := msg.(faulted); ok {
		g.fault = f.fault
		return g, tea.Quit
	}
	if g.fault != nil {
		return g, tea.Quit
	}
	var c tea.Cmd
	g.model, c = g.model.Update(msg)
	return g, g.guarded(c)
}

func (g *guard) View() (frame string) {
	defer func() {
		if r := recover(); r != nil {
			g.fail(r) // the next message quits
			frame = ""
		}
	}()
	if g.fault != nil {
		return ""
	}
	return g.model.View()
}

func (g *guard) fail(r any) tea.Cmd {
	g.fault = &FaultError{Value: r, Stack: string(debug.Stack())}
	return tea.Quit
}

// faulted is the panic of a command.
type faulted struct{ fault *FaultError }

// guarded makes a command that answers with a panic instead of raising it.
func (g *guard) guarded(c tea.Cmd) tea.Cmd {
	if c == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		defer func() {
			if r := recover(); r != nil {
				msg = faulted{&FaultError{Value: r, Stack: string(debug.Stack())}}
			}
		}()
		msg = c()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for i := range batch {
				batch[i] = g.guarded(batch[i])
			}
		}
		return msg
	}
}
