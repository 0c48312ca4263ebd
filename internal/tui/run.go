package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/kappactl/kappactl/internal/job"
)

// Options are what the interface is started with.
type Options struct {
	// Job is whose page is opened; the end of its deployment ends the program. Empty opens the page of all jobs.
	Job      job.Name
	ReadOnly bool   // no acts
	Place    string // context and database, for the header
	// Protected is the name of a protected context, which acts that readers could notice ask for; empty: none is.
	Protected string
	Look      Look
	In        io.Reader
	Out       io.Writer
	Now       func() time.Time
}

// Outcome is how it ended.
type Outcome struct {
	Code job.ExitCode
	// Summary is the text left in the scrollback: five lines about the job, or none.
	Summary []string
}

// ErrInterrupted is returned when a person ends the program with ctrl-c.
var ErrInterrupted = errors.New("interrupted")

// FaultError is a fault of the interface itself. The terminal was restored before it is returned.
type FaultError struct {
	Value any
	Stack string
}

func (e *FaultError) Error() string { return fmt.Sprintf("fault in the interface: %v", e.Value) }

// Run shows the interface on the terminal until a person leaves it, the deployment of Options.Job reaches its end, or
// ctx ends. However it ends, the terminal is as it was before.
func Run(ctx context.Context, src Source, o Options) (Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(commands{ctx: ctx, src: src, out: o.Out, now: o.Now}, o)
	g := &guard{model: m}
	p := tea.NewProgram(g, tea.WithAltScreen(), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler())
	// Quit, and not tea.WithContext: that one kills the program, which closes its input while its reader still reads.
	stop := context.AfterFunc(ctx, p.Quit)
	defer stop()
	_, err := p.Run()
	switch {
	case g.fault != nil:
		return Outcome{}, g.fault
	case ctx.Err() != nil:
		return Outcome{Summary: m.summary(job.ExitOK)}, context.Cause(ctx)
	case err != nil:
		return Outcome{}, fmt.Errorf("show the interface: %w", err)
	}
	return m.outcome()
}

// outcome translates the exit of the model for the caller.
func (m *Model) outcome() (Outcome, error) {
	switch m.exit {
	case exitEnded:
		code, _ := m.detail.Deployment.Outcome("settled")
		return Outcome{Code: code, Summary: m.summary(code)}, nil
	case exitInterrupted:
		return Outcome{Summary: m.summary(job.ExitOK)}, ErrInterrupted
	case exitUnknownJob:
		return Outcome{}, m.failure
	case exitQuit, exitNone:
	}
	return Outcome{Summary: m.summary(job.ExitOK)}, nil
}

// summary is about the job on the page; there is none for the page of all.
func (m *Model) summary(code job.ExitCode) []string {
	if m.detail == nil || m.page == pageOverview {
		return nil
	}
	return Summary(*m.detail, code, m.now)
}
