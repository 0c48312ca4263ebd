package tui

import (
	"context"
	"errors"
	"io"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

const (
	// lookEvery is the interval between two queries.
	lookEvery = time.Second
	// lookPatience is how long it waits for an answer before it calls the page stale.
	lookPatience = 5 * time.Second
)

// The messages that commands answer with. Those with a generation are dropped when the page has moved on.
type (
	ticked struct{ at time.Time }

	looked struct {
		generation int
		at         time.Time
		overview   *Overview
		detail     *Detail
		events     []Event
		err        error
	}

	resolved struct {
		generation int
		act        Act
		err        error
	}

	acted struct {
		generation int
		answer     ledger.Answer
		err        error
	}
)

// commands are all input and output of the interface.
type commands struct {
	ctx context.Context //nolint:containedctx // of the program: it ends the calls that are still out
	src Source
	out io.Writer
	now func() time.Time
}

func (c commands) tick() tea.Cmd {
	return func() tea.Msg {
		timer := time.NewTimer(lookEvery) // and not tea.Tick, which outlives the program
		defer timer.Stop()
		select {
		case <-timer.C:
			return ticked{c.now()}
		case <-c.ctx.Done():
			return nil
		}
	}
}

// look reads what a page shows.
func (c commands) look(generation int, page page, name job.Name) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(c.ctx, lookPatience)
		defer cancel()
		m := looked{generation: generation}
		switch page {
		case pageOverview:
			var o Overview
			o, m.err = c.src.Jobs(ctx)
			m.overview = &o
		case pageDeployment, pageLayers, pageExperiment:
			m.detail, m.err = c.detail(ctx, name)
		case pageEvents:
			if m.detail, m.err = c.detail(ctx, name); m.err == nil {
				m.events, m.err = c.src.Events(ctx, name)
			}
		}
		if m.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			m.err = errors.New("no answer within " + lookPatience.String())
		}
		m.at = c.now()
		return m
	}
}

func (c commands) detail(ctx context.Context, name job.Name) (*Detail, error) {
	d, err := c.src.Job(ctx, name)
	if err != nil {
		return nil, err
	}
	return &d, nil
}

func (c commands) resolve(generation int, name job.Name, verb ledger.Verb) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(c.ctx, lookPatience)
		defer cancel()
		ref, err := c.src.Resolve(ctx, name, verb)
		return resolved{generation: generation, act: Act{Verb: verb, Ref: ref}, err: err}
	}
}

func (c commands) do(generation int, act Act) tea.Cmd {
	return func() tea.Msg {
		answer, err := c.src.Do(c.ctx, act)
		return acted{generation: generation, answer: answer, err: err}
	}
}
