package reprocess

import (
	"context"
	"time"

	"github.com/kappactl/kappactl/internal/retry"
)

// looks is how often a rest looks whether what is awaited has happened, and most often.
const (
	looks     = 20
	looksMost = 20 * time.Millisecond
)

// rest waits for the next tick, or less when what w awaits has happened. It says false when ctx ended before. That the
// database is away shows at the next pass.
func (w *watch) rest(ctx context.Context) bool {
	left, step := w.c.config.Tick, max(w.c.config.Tick/looks, looksMost)
	if w.samples.Together {
		return retry.Sleep(ctx, w.c.beat()) == nil
	}
	if w.awaits == "" {
		return retry.Sleep(ctx, left) == nil
	}
	for ; left > 0; left -= step {
		if retry.Sleep(ctx, min(step, left)) != nil {
			return false
		}
		if happened, err := w.awaits.Happened(ctx, w.c.Pool, w.job, w.number); err == nil && happened {
			return true
		}
	}
	return true
}

// beat is the time until the next of the moments, a tick apart, at which all steady versions take their samples. One
// that is almost there is passed over.
func (c *Controller) beat() time.Duration {
	tick := c.config.Tick
	left := tick - time.Since(c.began)%tick
	if left < tick/4 {
		left += tick
	}
	return left
}
