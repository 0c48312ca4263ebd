package hooks

import (
	"context"
	"errors"
	"sync"
	"time"
)

// tidyEvery is between two times at which the hooks are noted, the forgotten ones taken away and old deliveries removed.
const tidyEvery = time.Minute

// rounds are the looks for work of one Run. Its owner is the goroutine of Run.
type rounds struct {
	*Service
	hands  []int     // deliveries that are being worked on, by hook
	ended  chan int  // the hook of one that is over; it has room for all, so that no worker waits for a look
	tidied time.Time // zero: the hooks are not noted yet
	work   sync.WaitGroup
	failed bool // the last look; it was said
}

// Run tells hooks until ctx ends; what is in hand then is left to another agent. It returns no error: what fails is tried again.
// Without hooks it forgets those that no agent has any more.
func (s *Service) Run(ctx context.Context) error {
	n := len(s.config.Hooks)
	r := &rounds{Service: s, hands: make([]int, n), ended: make(chan int, n*s.config.AtOnce)}
	defer r.work.Wait()
	every := s.config.Poll
	if n == 0 {
		every = tidyEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for err := r.look(ctx); ; {
		r.outcome(ctx, err)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			err = r.look(ctx)
		case i := <-r.ended:
			r.hands[i]--
			err = r.begin(ctx, i, r.config.Hooks[i])
		}
	}
}

// outcome logs that the looks begin to fail and that they work again: between the two a database may be away for hours.
func (r *rounds) outcome(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !r.failed:
		r.Log.Warn("look for hooks to run; it is tried again", "error", err)
		r.failed = true
	case err == nil && r.failed:
		r.Log.Info("look for hooks to run works again")
		r.failed = false
	}
}

// look makes deliveries of new events and begins those that are due.
func (r *rounds) look(ctx context.Context) error {
	if now := r.Now(); r.tidied.IsZero() || now.Sub(r.tidied) > tidyEvery {
		if err := register(ctx, r.Pool, r.config.Hooks); err != nil {
			return err
		}
		r.tidied = now
		if err := errors.Join(forget(ctx, r.Pool, r.config.Hooks, r.config.Forget), tidy(ctx, r.Pool, r.config.Hooks)); err != nil && ctx.Err() == nil {
			r.Log.Warn("tidy deliveries", "error", err)
		}
	}
	for i, h := range r.config.Hooks {
		if err := enqueue(ctx, r.Pool, h); err != nil {
			return err
		}
		if err := r.begin(ctx, i, h); err != nil {
			return err
		}
	}
	return nil
}

// begin starts the deliveries of hook i that are due, as many as it may have in hand.
func (r *rounds) begin(ctx context.Context, i int, h Hook) error {
	for r.hands[i] < r.config.AtOnce && ctx.Err() == nil {
		// Not cut short by the end of ctx: a claim in doubt would keep the delivery for its whole time.
		d, found, err := claim(context.WithoutCancel(ctx), r.Pool, r.Agent, h)
		if err != nil || !found {
			return err
		}
		r.hands[i]++
		r.work.Go(func() {
			defer func() { r.ended <- i }()
			if err := r.deliver(ctx, h, d); err != nil && ctx.Err() == nil {
				r.Log.Warn("hook", "hook", d.Hook, "event", d.Event, "error", err)
			}
		})
	}
	return nil
}
