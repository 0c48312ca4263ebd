package retry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/retry"
)

func TestSleepEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if err := retry.Sleep(ctx, time.Millisecond); err != nil {
		t.Error(err)
	}
	cancel()
	for _, d := range []time.Duration{0, time.Hour} {
		if err := retry.Sleep(ctx, d); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", d, err)
		}
	}
}

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	for n, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 5 * time.Second, 1 << 30: 5 * time.Second,
	} {
		if got := retry.Backoff(n, time.Second, 5*time.Second); got != want {
			t.Errorf("after %d failures: %s, want %s", n, got, want)
		}
	}
	if got := retry.Backoff(1, time.Hour, time.Minute); got != time.Minute {
		t.Errorf("a first pause above the limit: %s", got)
	}
}
