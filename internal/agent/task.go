package agent

import (
	"context"
	"time"

	"github.com/kappactl/kappactl/internal/retry"
)

// task is a running goroutine.
type task struct {
	cancel context.CancelFunc
	done   chan struct{}
	began  time.Time
	err    error // set before done is closed
}

func (t *task) ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// backoff tells when a task that ended with an error may start again.
type backoff struct {
	until    time.Time
	failures int
}

const (
	backoffFirst = 500 * time.Millisecond
	backoffMost  = 30 * time.Second
	backoffReset = time.Minute // a task that ran this long starts again with the first pause
)

// start runs f in its own goroutine.
func (h *hosting) start(ctx context.Context, k key, f func(context.Context) error) {
	own, cancel := context.WithCancel(ctx)
	t := &task{cancel: cancel, done: make(chan struct{}), began: h.a.Now()}
	h.tasks[k] = t
	go func() {
		defer close(t.done)
		defer cancel()
		t.err = f(own)
	}()
}

// over removes a task that has ended. After an error it may not start again before a pause, which grows.
func (h *hosting) over(k key, t *task) {
	delete(h.tasks, k)
	if t.err == nil {
		delete(h.backoffs, k)
		return
	}
	now := h.a.Now()
	b := h.backoffs[k]
	if now.Sub(t.began) >= backoffReset {
		b.failures = 0
	}
	b.failures++
	pause := retry.Backoff(b.failures, backoffFirst, backoffMost)
	b.until = now.Add(pause)
	h.backoffs[k] = b
	h.quiet.failed(k.String(), t.err, "again_in", pause.String())
}

// backsOff reports whether a task may not start yet.
func (h *hosting) backsOff(k key) bool { return h.a.Now().Before(h.backoffs[k].until) }

// backingOff returns the items of a kind that may not start yet; other agents may claim them meanwhile. It forgets
// items that ended elsewhere.
func (h *hosting) backingOff(kind string) []int64 {
	now := h.a.Now()
	ids := []int64{}
	for k, b := range h.backoffs {
		switch {
		case now.Sub(b.until) > backoffReset:
			delete(h.backoffs, k)
		case k.kind == kind && now.Before(b.until):
			ids = append(ids, k.id)
		}
	}
	return ids
}
