package hooks

import (
	"context"
	"errors"
	"sync"
	"time"
)

// tidyInterval is the interval of registering the hooks, forgetting removed ones and deleting old deliveries.
const tidyInterval = time.Minute

// rounds is the state of one Run. The goroutine of Run owns it.
type rounds struct {
	*Service
	running []int     // deliveries in progress, by hook
	ended   chan int  // hook whose delivery has ended; buffered for all, so that no worker blocks
	tidied  time.Time // zero: the hooks are not registered yet
	work    sync.WaitGroup
	failed  bool // the last round failed and was logged
}

// Run delivers events until ctx ends; deliveries in progress are then left to another agent. It returns no error:
// failures are retried. Without hooks it only forgets those that no agent has any more.
func (s *Service) Run(ctx context.Context) error {
	n := len(s.config.Hooks)
	r := &rounds{Service: s, running: make([]int, n), ended: make(chan int, n*s.config.AtOnce)}
	defer r.work.Wait()
	every := s.config.Poll
	if n == 0 {
		every = tidyInterval
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for err := r.round(ctx); ; {
		r.report(ctx, err)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			err = r.round(ctx)
		case i := <-r.ended:
			r.running[i]--
			err = r.begin(ctx, i, r.config.Hooks[i])
		}
	}
}

// report logs when rounds begin to fail and when they work again. The database may be unreachable for hours in
// between.
func (r *rounds) report(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !r.failed:
		r.Log.Warn("process hook deliveries; will retry", "error", err)
		r.failed = true
	case err == nil && r.failed:
		r.Log.Info("process hook deliveries works again")
		r.failed = false
	}
}

// round creates deliveries for new events and starts those that are due.
func (r *rounds) round(ctx context.Context) error {
	if now := r.Now(); r.tidied.IsZero() || now.Sub(r.tidied) > tidyInterval {
		if err := register(ctx, r.Pool, r.config.Hooks); err != nil {
			return err
		}
		r.tidied = now
		if err := errors.Join(forget(ctx, r.Pool, r.config.Hooks, r.config.Forget),
			tidy(ctx, r.Pool, r.config.Hooks)); err != nil && ctx.Err() == nil {
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

// begin starts the due deliveries of hook i, up to its limit.
func (r *rounds) begin(ctx context.Context, i int, h Hook) error {
	for r.running[i] < r.config.AtOnce && ctx.Err() == nil {
		// The end of ctx must not interrupt this: a claim of unknown outcome would block the delivery until its
		// timeout.
		d, found, err := claim(context.WithoutCancel(ctx), r.Pool, r.Agent, h)
		if err != nil || !found {
			return err
		}
		r.running[i]++
		r.work.Go(func() {
			defer func() { r.ended <- i }()
			if err := r.deliver(ctx, h, d); err != nil && ctx.Err() == nil {
				r.Log.Warn("hook", "hook", d.Hook, "event", d.Event, "error", err)
			}
		})
	}
	return nil
}
