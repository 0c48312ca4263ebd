package readiness

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

const (
	// maxLagPoints bounds a deployment's series. The interval of the points grows with its age (lagApart), so that the
	// series can cover weeks without losing the replay at the beginning: 41 points in the first 40 s, 180 in an hour,
	// 420 in a week.
	maxLagPoints = 500
	lagApart     = 40
)

// LagSeries describes the stored series of a deployment's lag: the number of points, the times of the first and the
// last by the database's clock, and the phase of the last.
type LagSeries struct {
	Count       int
	First, Last time.Time
	Phase       job.Phase
}

// Due reports whether another point should be stored.
func (l LagSeries) Due(now time.Time, phase job.Phase) bool {
	return l.Count < maxLagPoints && (l.Count == 0 || phase != l.Phase || now.Sub(l.Last) >= lagEvery(now.Sub(l.First)))
}

// Add counts a point that was stored now.
func (l *LagSeries) Add(now time.Time, phase job.Phase) {
	if l.Count == 0 {
		l.First = now
	}
	l.Count, l.Last, l.Phase = l.Count+1, now, phase
}

// lagEvery returns the interval of the points at that age of the series.
func lagEvery(since time.Duration) time.Duration { return max(time.Second, since/lagApart) }

// Totals are sums over the partitions of a version; nil if one of them is unknown.
type Totals struct {
	Position         int64
	LastStable       *int64
	Lag              *int64
	LagSeconds       *float64 // of the partition that is furthest behind
	RecordsPerSecond *float64
}

// Sum adds up the partitions of a version.
func Sum(rows []Observation) Totals {
	var t Totals
	var stable, lag int64
	var rate, seconds float64
	known, rated, timed := true, true, false
	for _, o := range rows {
		t.Position += o.Position
		if o.LastStable == nil || o.Lag == nil {
			known = false
		} else {
			stable, lag = stable+*o.LastStable, lag+*o.Lag
		}
		if o.LagSeconds != nil {
			seconds, timed = max(seconds, *o.LagSeconds), true
		}
		if o.ReadRate == nil {
			rated = false
		} else {
			rate += *o.ReadRate
		}
	}
	if known {
		t.LastStable, t.Lag = &stable, &lag
	}
	if timed {
		t.LagSeconds = &seconds
	}
	if rated {
		t.RecordsPerSecond = &rate
	}
	return t
}

// ETA returns the seconds until all unread records are read at the difference of two rates; nil if their number does
// not fall, if it is unknown, or if the verdict is that reading does not progress. produced is nil where new records do
// not count.
func ETA(v job.Verdict, unread *int64, read, produced *float64) *float64 {
	seconds := 0.0
	switch {
	case unread == nil || Endless(v):
		return nil
	case *unread == 0:
		return &seconds
	case read == nil:
		return nil
	}
	net := *read
	if produced != nil {
		net -= *produced
	}
	if net <= 0 {
		return nil
	}
	seconds = float64(*unread) / net
	return &seconds
}

// Endless reports whether a verdict means that reading does not progress, which an estimate from the rates of the last
// seconds would contradict.
func Endless(v job.Verdict) bool {
	return v == job.NotConverging || v == job.Stalled || v == job.BlockedByTxn || v == job.Unknown
}
