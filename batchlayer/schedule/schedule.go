package schedule

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// State is the state of a tick.
type State string

// The states of a tick.
const (
	Waiting State = "waiting" // for its run to be asked for
	Started State = "started" // its run was asked for
	Skipped State = "skipped" // another run was under way
	Missed  State = "missed"  // no agent was there in time
)

// Tick is a moment at which a run is due.
type Tick struct {
	At       time.Time
	State    State
	Together int // number of ticks in this row; missed ticks share one row, that of the oldest
}

// Policy decides about ticks that are looked at late, or while a run is under way.
type Policy struct {
	Missed      job.MissedPolicy
	Overlap     job.OverlapPolicy
	MissedAfter time.Duration
}

const (
	mostRuns = 100                  // that follow one another after an outage, with missed: all
	lookBack = 366 * 24 * time.Hour // older ticks are not counted
)

// Due are the ticks from next to now as they are to be written, oldest first, and the moment of the tick after them.
// Those that are to run wait. under reports whether a run is under way or asked for, waiting whether a tick waits
// already.
func (m Moments) Due(next, now time.Time, p Policy, under, waiting bool) (ticks []Tick, then time.Time) {
	d, then := m.passed(next, now, p.MissedAfter)
	runs := d.newest[len(d.newest)-d.runs(p.Missed):]
	if missed := d.count - len(runs); missed > 0 {
		ticks = append(ticks, Tick{At: d.first, State: Missed, Together: missed})
	}
	outage := p.Missed == job.MissedAll && (len(runs) > 1 || !d.onTime) // its runs follow one another, whatever is under way
	for _, at := range runs {
		state := Waiting
		if !outage && (waiting || under && p.Overlap == job.OverlapSkip) {
			state = Skipped
		}
		ticks = append(ticks, Tick{At: at, State: state, Together: 1})
	}
	return ticks, then
}

// due are ticks whose time has come.
type due struct {
	first  time.Time
	count  int
	newest []time.Time // at most mostRuns
	onTime bool        // the newest is; the others are missed
}

// passed are the ticks from next to now, and the moment of the tick after them.
func (m Moments) passed(next, now time.Time, missedAfter time.Duration) (d due, then time.Time) {
	if early := now.Add(-lookBack); next.Before(early) {
		next = m.from(next, early)
	}
	d.first = next
	for at := next; !at.After(now); at = next {
		next = m.Next(at)
		d.onTime = now.Sub(at) <= min(missedAfter, next.Sub(at)/2)
		d.count++
		if len(d.newest) == mostRuns {
			d.newest = d.newest[:copy(d.newest, d.newest[1:])]
		}
		d.newest = append(d.newest, at)
	}
	return d, next
}

// from is the first moment that is not before early, of those that follow next.
func (m Moments) from(next, early time.Time) time.Time {
	if m.every > 0 {
		return next.Add((early.Sub(next) + m.every - 1) / m.every * m.every)
	}
	return m.Next(early.Add(-time.Second))
}

// runs is how many of the newest ticks run.
func (d due) runs(p job.MissedPolicy) int {
	switch p {
	case job.MissedAll:
		return len(d.newest)
	case job.MissedSkip:
		if !d.onTime {
			return 0
		}
	case job.MissedRunOnce:
	}
	return min(1, d.count)
}

// LateAt is the moment from which a job is late whose newest results were cut at a moment, or that has had a schedule
// since then and has none: two runs were due since.
func (m Moments) LateAt(cut time.Time) time.Time { return m.Next(m.Next(cut)) }
