// Package retry has the pauses between attempts.
package retry

import (
	"context"
	"time"
)

// Sleep waits for d. It returns the error of ctx when ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
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

// Backoff is the pause after the n-th failure in a row, from 1: first, then twice as long each time, at most most.
func Backoff(n int, first, most time.Duration) time.Duration {
	d := first
	for range n - 1 {
		if d *= 2; d >= most {
			return most
		}
	}
	return min(d, most)
}
