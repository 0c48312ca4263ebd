package speedlayer

import (
	"context"
	"sync"
	"time"

	"github.com/kappactl/kappactl/internal/retry"
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
	return retry.Sleep(ctx, b.debt(n))
}
