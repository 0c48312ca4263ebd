package speedlayer

import (
	"log/slog"
	"sync"
	"time"
)

// quiet logs troubles that repeat: the first time, and then once a minute with the number left out. Guarded by mu.
type quiet struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	seen map[string]*trouble
}

type trouble struct {
	said   time.Time
	unsaid int
}

// sayAgain is how long the same trouble is left unsaid.
const sayAgain = time.Minute

func newQuiet(log *slog.Logger, now func() time.Time) *quiet {
	return &quiet{log: log, now: now, seen: map[string]*trouble{}}
}

// warn logs what with err and args, unless the same was logged within the last minute.
func (q *quiet) warn(what string, err error, args ...any) {
	q.mu.Lock()
	now := q.now()
	t, known := q.seen[what]
	if known && now.Sub(t.said) < sayAgain {
		t.unsaid++
		q.mu.Unlock()
		return
	}
	if !known {
		t = &trouble{}
		q.seen[what] = t
	}
	unsaid := t.unsaid
	t.said, t.unsaid = now, 0
	q.mu.Unlock()
	args = append(args, "error", err)
	if unsaid > 0 {
		args = append(args, "times_since", unsaid)
	}
	q.log.Warn(what, args...)
}

// over marks a logged condition as ended, so that its next occurrence is logged at once.
func (q *quiet) over(what string) {
	q.mu.Lock()
	_, known := q.seen[what]
	delete(q.seen, what)
	q.mu.Unlock()
	if known {
		q.log.Info(what + ": over")
	}
}
