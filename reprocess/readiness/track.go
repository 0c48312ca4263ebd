package readiness

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

const (
	rateWindow = 10 * time.Second // live
	replayRate = time.Minute      // a replay progresses by whole segments
	maxEnds    = 600
)

// Track keeps the samples of one partition and derives lag time, rates and stalls from them. The version's controller
// owns it.
type Track struct {
	phase     job.Phase
	owned     time.Time // last sample at which a worker held it or it was paused, otherwise the first in this phase
	progress  time.Time // when read last increased
	heldSince time.Time // since when the last stable offset has been below the end; zero if it is not
	stable    int64
	first     int64    // the first end seen, whose age is unknown; -1 once the position has reached it
	ends      []point  // end offsets that the position has not reached, oldest first
	window    []moment // oldest first, as far back as convergingWithin
}

// point is an end offset and when it was first seen.
type point struct {
	at  time.Time
	end int64
}

// moment holds the read and the available offsets of one sample.
type moment struct {
	at        time.Time
	read, end int64
	readable  int64
}

// Seed adopts an earlier controller's sample: an end offset that had been unread for lag. It does nothing once there
// are samples.
func (t *Track) Seed(at time.Time, position, end int64, lag time.Duration) {
	if len(t.ends) > 0 {
		return
	}
	t.first = -1
	if lag > 0 && end > position {
		t.ends = append(t.ends, point{at.Add(-lag), position + 1})
	}
	t.ends = append(t.ends, point{at, end})
}

// Observe adds the sample s, taken at now, and sets the values derived from earlier samples.
func (t *Track) Observe(now time.Time, s *Sample) {
	t.enter(now, s.Phase)
	if s.Owned || s.Paused {
		t.owned = now
	}
	read := s.End - s.Unread()
	if n := len(t.window); n == 0 || read > t.window[n-1].read || s.Readable() == 0 {
		t.progress = now
	}
	switch {
	case s.End <= s.LastStable:
		t.heldSince = time.Time{}
	case t.heldSince.IsZero() || s.LastStable > t.stable:
		t.heldSince = now // another transaction than before
	}
	t.stable = s.LastStable
	t.window = append(t.window, moment{now, read, s.End, s.Readable()})
	for len(t.window) > 1 && now.Sub(t.window[1].at) >= convergingWithin {
		t.window = t.window[1:]
	}
	s.LagTime = t.lag(now, s)
	s.AtLeast = t.first >= 0
	s.Unowned, s.Idle = now.Sub(t.owned), now.Sub(t.progress)
	if !t.heldSince.IsZero() {
		s.Held = now.Sub(t.heldSince)
	}
	if first := t.window[0]; now.Sub(first.at) >= convergingWithin {
		s.Before = &first.readable
	}
}

// enter discards samples of a phase in which positions had another meaning.
func (t *Track) enter(now time.Time, phase job.Phase) {
	if !t.owned.IsZero() && (t.phase == phase || t.phase.Consumes() && phase.Consumes()) {
		t.phase = phase
		return
	}
	t.phase, t.owned, t.progress, t.window = phase, now, now, nil
}

// lag returns the age of the oldest sampled end offset that the position has not reached, or zero if it has reached
// all.
func (t *Track) lag(now time.Time, s *Sample) time.Duration {
	switch n := len(t.ends); {
	case n == 0:
		t.first = s.End
		t.ends = append(t.ends, point{now, s.End})
	case s.End > t.ends[n-1].end:
		t.ends = append(t.ends, point{now, s.End})
	}
	position := s.End - s.Unread()
	if position >= t.first {
		t.first = -1
	}
	reached := 0
	for reached < len(t.ends) && t.ends[reached].end <= position {
		reached++
	}
	if reached == len(t.ends) {
		t.ends = t.ends[len(t.ends)-1:] // so that the same end is not new when seen again
		return 0
	}
	t.ends = t.ends[reached:]
	if len(t.ends) > maxEnds {
		t.ends = thin(t.ends)
	}
	return max(0, now.Sub(t.ends[0].at))
}

// thin drops every second point except the first and the last.
func thin(in []point) []point {
	out := []point{in[0]}
	for i := 2; i < len(in)-1; i += 2 {
		out = append(out, in[i])
	}
	return append(out, in[len(in)-1])
}

// Rates returns the records read and produced per second over the last samples; false if there are fewer than two.
func (t *Track) Rates() (read, produced float64, ok bool) {
	span := rateWindow
	if !t.phase.Consumes() {
		span = replayRate
	}
	if len(t.window) < 2 {
		return 0, 0, false
	}
	last := t.window[len(t.window)-1]
	first := t.window[0]
	for _, m := range t.window[:len(t.window)-1] {
		first = m
		if last.at.Sub(m.at) <= span {
			break
		}
	}
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0, 0, false
	}
	return max(0, float64(last.read-first.read)) / seconds, max(0, float64(last.end-first.end)) / seconds, true
}
