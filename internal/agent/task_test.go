package agent

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

func TestATaskThatFailsIsTriedAgainWithGrowingPauses(t *testing.T) {
	now := time.Unix(1000, 0)
	var lines strings.Builder
	log := slog.New(slog.NewTextHandler(&lines, nil))
	h := newHosting(New(Deps{Log: log, Now: func() time.Time { return now }}, Config{ID: "a"}))
	for _, k := range []key{{ref: job.Ref{Job: "j", Number: 1}}, {kind: "request", id: 1}} {
		lines.Reset()
		var pauses []time.Duration
		for range 9 {
			h.over(k, &task{began: now, err: errors.New("no")})
			pauses = append(pauses, h.backoffs[k].until.Sub(now))
			if !h.backsOff(k) {
				t.Fatalf("%s may begin at once", k)
			}
		}
		if pauses[0] != backoffFirst || pauses[1] != 2*backoffFirst || pauses[8] != backoffMost {
			t.Errorf("%s: pauses %v", k, pauses)
		}
		if n := strings.Count(lines.String(), "\n"); n != 1 {
			t.Errorf("%s: %d log lines for the same error:\n%s", k, n, lines.String())
		}
		h.over(k, &task{began: now})
		if h.backsOff(k) {
			t.Errorf("%s backs off after a good run", k)
		}
	}
}
