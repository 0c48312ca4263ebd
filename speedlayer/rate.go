package speedlayer

import (
	"context"
	"sync"
	"time"
)

// bucket bounds bytes a second over the workers of one version on this agent. Guarded by mu.
type bucket struct {
	now func() time.Time

	mu   sync.Mutex
	rate float64   // bytes a second; 0 = no limit
	free time.Time // when everything taken so far is paid for
}

// set changes the rate for what is taken from now on.
func (b *bucket) set(rate float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rate = rate
}

// debt books n bytes and returns how long to wait for them. A burst of one second is let through.
func (b *bucket) debt(n int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rate <= 0 {
		return 0
	}
	now := b.now()
	if earliest := now.Add(-time.Second); b.free.Before(earliest) {
		b.free = earliest
	}
	b.free = b.free.Add(time.Duration(float64(n) / b.rate * float64(time.Second)))
	return max(0, b.free.Sub(now))
}

// take books n bytes and waits until they are paid for.
func (b *bucket) take(ctx context.Context, n int) error {
	return wait(ctx, b.debt(n))
}

// wait waits for d or until ctx is done.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// backoff is how long to wait before the n-th try again, from 1: doubling from first up to most.
func backoff(n int, first, most time.Duration) time.Duration {
	d := first
	for range n - 1 {
		if d *= 2; d >= most {
			return most
		}
	}
	return min(d, most)
}
