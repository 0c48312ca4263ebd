package abhttp

import (
	"math"
	"sync"
	"time"
)

// bucket is a token bucket: it lets rate requests a second pass, and as many as its size at once.
type bucket struct {
	rate, size float64
	now        func() time.Time

	mu   sync.Mutex
	left float64
	at   time.Time
}

func newBucket(rate, size float64, now func() time.Time) *bucket {
	return &bucket{rate: rate, size: size, now: now, left: size, at: now()}
}

// take lets a request pass, or returns after how many seconds another one may.
func (b *bucket) take() (wait int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.left = min(b.size, b.left+max(0, now.Sub(b.at).Seconds())*b.rate)
	if b.at = now; b.left < 1 {
		return max(1, int(math.Ceil((1-b.left)/b.rate))), false
	}
	b.left--
	return 0, true
}
