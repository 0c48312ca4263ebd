package agent

import (
	"log/slog"
	"time"
)

// sayAgainAfter is how long a repeated error is not logged again.
const sayAgainAfter = 30 * time.Second

// quiet logs a repeated error periodically, and its end once. One goroutine owns it.
type quiet struct {
	log      *slog.Logger
	now      func() time.Time
	said     map[string]time.Time
	texts    map[string]string
	failures int // consecutive, of outcome
	since    time.Time
}

func newQuiet(log *slog.Logger, now func() time.Time) *quiet {
	return &quiet{log: log, now: now, said: map[string]time.Time{}, texts: map[string]string{}}
}

// outcome counts the failures of a repeated action.
func (q *quiet) outcome(what string, err error) {
	if err != nil {
		if q.failures == 0 {
			q.since = q.now()
		}
		q.failures++
		q.failed(what, err, "since", q.since.UTC().Format(time.RFC3339))
		return
	}
	if q.failures > 0 {
		q.log.Info(what+" works again", "failures", q.failures)
		q.failures = 0
		delete(q.said, what)
	}
}

// failed logs an error unless it was logged recently.
func (q *quiet) failed(what string, err error, args ...any) {
	now := q.now()
	if at, ok := q.said[what]; ok && q.texts[what] == err.Error() && now.Sub(at) < sayAgainAfter {
		return
	}
	for k, at := range q.said { // forget errors that have not been logged for long
		if now.Sub(at) > 10*sayAgainAfter {
			delete(q.said, k)
			delete(q.texts, k)
		}
	}
	q.said[what], q.texts[what] = now, err.Error()
	q.log.Warn(what, append([]any{"error", err}, args...)...)
}
