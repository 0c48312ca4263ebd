// Package gather combines the questions of many goroutines into one: questions to a server that arrive within a moment
// are sent together.
package gather

import (
	"context"
	"sync"
	"time"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/retry"
)

// Gather answers the questions of many goroutines with one call of ask for all that arrive within a moment after the
// first. An answer is never older than its question. mu guards it.
type Gather[Q, A any] struct {
	ask     func(ctx context.Context, questions []Q) ([]A, error)
	moment  time.Duration
	timeout time.Duration

	mu   sync.Mutex
	open *sitting[Q, A] // accepts further questions; nil: none open
}

// sitting is a set of questions that are asked together. Answers and error are set before done is closed.
type sitting[Q, A any] struct {
	questions []Q
	done      chan struct{}
	answers   []A
	err       error
}

// New creates a Gather. ask returns one answer per question, in their order, within timeout.
func New[Q, A any](moment, timeout time.Duration,
	ask func(ctx context.Context, questions []Q) ([]A, error),
) *Gather[Q, A] {
	return &Gather[Q, A]{ask: ask, moment: moment, timeout: timeout}
}

// Put asks a question. If asking together fails although the database is reachable, the question is asked separately,
// so that a fault in one does not affect the others.
func (g *Gather[Q, A]) Put(ctx context.Context, question Q) (A, error) {
	s, mine := g.join(question)
	if mine == 0 {
		g.run(ctx, s)
	}
	var none A
	select {
	case <-s.done:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	if s.err == nil {
		return s.answers[mine], nil
	}
	if len(s.questions) == 1 || pg.Unreachable(s.err) || ctx.Err() != nil {
		return none, s.err
	}
	answers, err := g.ask(ctx, []Q{question})
	if err != nil {
		return none, err
	}
	return answers[0], nil
}

// join adds a question to the open sitting, or opens one, and returns its index there.
func (g *Gather[Q, A]) join(question Q) (*sitting[Q, A], int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = &sitting[Q, A]{done: make(chan struct{})}
	}
	g.open.questions = append(g.open.questions, question)
	return g.open, len(g.open.questions) - 1
}

// waiting returns the number of questions that wait to be asked.
func (g *Gather[Q, A]) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		return 0
	}
	return len(g.open.questions)
}

// run waits for further questions and asks, in the goroutine of the first. It continues if that goroutine's ctx ends,
// because the others depend on it.
func (g *Gather[Q, A]) run(ctx context.Context, s *sitting[Q, A]) {
	_ = retry.Sleep(ctx, g.moment)
	g.mu.Lock()
	g.open = nil
	g.mu.Unlock()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.timeout)
	defer cancel()
	s.answers, s.err = g.ask(limited, s.questions)
	close(s.done)
}
