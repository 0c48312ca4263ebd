package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/pg"
)

// patience is that of a command that waits for others: it goes on through a restart of the database and while no
// agent is alive, and says so once each time.
type patience struct {
	*app
	client   *client
	lost     bool         // the database does not answer
	noAgent  bool         // nobody works
	lookedAt time.Time    // for agents
	noticed  func(string) // is told, too, what is said; may be nil
}

func newPatience(a *app, c *client) *patience { return &patience{app: a, client: c} }

// pause waits until it is time to look again. failed is the error of the last look; one that cannot pass is returned,
// as is the end of ctx.
func (w *patience) pause(ctx context.Context, every time.Duration, failed error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case failed != nil && !pg.Unreachable(failed):
		return failed
	case failed != nil && !w.lost:
		w.lost = true
		w.notice("the database does not answer; waiting for it: %s", oneLine(failed))
	case failed == nil && w.lost:
		w.lost = false
		w.notice("the database answers again")
	case failed == nil:
		w.lookForAgents(ctx)
	}
	timer := time.NewTimer(every)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// lookForAgents says, once, that nobody is there to do the work, and that somebody is again.
func (w *patience) lookForAgents(ctx context.Context) {
	now := w.sys.Now()
	if now.Sub(w.lookedAt) < time.Second {
		return
	}
	w.lookedAt = now
	alive, err := w.client.agents(ctx)
	if err != nil {
		return // the next look at what is waited for reports it
	}
	switch {
	case alive == 0 && !w.noAgent:
		w.notice("no agent is alive; waiting for one (kappactl serve)")
	case alive > 0 && w.noAgent:
		w.notice("an agent is alive again")
	}
	w.noAgent = alive == 0
}

// notice says something that is no result.
func (w *patience) notice(format string, args ...any) {
	w.progress(format, args...)
	if w.noticed != nil {
		w.noticed(fmt.Sprintf(format, args...))
	}
}
