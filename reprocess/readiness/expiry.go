package readiness

import (
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

const (
	// BehindFrom is the lag from which a version is checked for unread records that retention may delete.
	BehindFrom = time.Minute
	// StillLate is the safety margin after which a warning ends: unread records must be read that many times earlier
	// than their deletion. Without it the warning would come and go near the limit.
	StillLate = 1.25
	// unknownLate is the time to deletion below which an unknown ETA is a warning.
	unknownLate = 15 * time.Minute
)

// Behind reports whether a version replays, or is so far behind that retention may matter.
func Behind(phase job.Phase, rows []Observation) bool {
	if phase == job.Replaying || phase == job.Building {
		return true
	}
	return slices.ContainsFunc(rows, func(o Observation) bool {
		return o.LagSeconds != nil && *o.LagSeconds >= BehindFrom.Seconds()
	})
}

// Expiry is when retention starts to delete unread records of a version, and when all are read.
type Expiry struct {
	Deadline   *time.Time // nil: nothing is deleted, or unknown
	At         string     // the partition of the deadline
	ETASeconds *float64   // at the rates of the last samples; nil: unknown
}

// NewExpiry returns the earliest deadline of the partitions, and the time until all of them are read.
func NewExpiry(phase job.Phase, rows []Observation) Expiry {
	var e Expiry
	var unread int64
	var net float64
	known := len(rows) > 0
	for _, o := range rows {
		if o.Deadline != nil && (e.Deadline == nil || o.Deadline.Before(*e.Deadline)) {
			e.Deadline, e.At = o.Deadline, o.Key.String()
		}
		if o.Lag == nil {
			known = false
			continue
		}
		unread += *o.Lag
		if o.ReadRate != nil {
			net += *o.ReadRate
			if phase.Consumes() && o.ProduceRate != nil {
				net -= *o.ProduceRate
			}
		}
	}
	if known && net > 0 {
		seconds := float64(unread) / net
		e.ETASeconds = &seconds
	}
	return e
}

// Warning states that retention deletes unread records before they are read; zero if it does not. An unknown ETA is a
// warning if the deadline is near. margin is 1, or StillLate if there was a warning before.
func (e Expiry) Warning(now time.Time, margin float64) reason.Reason {
	if e.Deadline == nil {
		return reason.Reason{}
	}
	left := e.Deadline.Sub(now)
	switch {
	case e.ETASeconds == nil && left < unknownLate:
		return reason.RetentionUnknown(e.At, *e.Deadline, left)
	case e.ETASeconds != nil && Seconds(*e.ETASeconds*margin) > left:
		return reason.Retention(e.At, *e.Deadline, left, Seconds(*e.ETASeconds))
	}
	return reason.Reason{}
}

// Conclusive reports whether the absence of a warning means that there is no danger: the brokers answered for every
// partition, and rates are known, which takes two samples of one controller.
func (e Expiry) Conclusive(phase job.Phase, rows []Observation, ages Ages) bool {
	if slices.ContainsFunc(rows, func(o Observation) bool { return o.Lag == nil }) {
		return false
	}
	return !Behind(phase, rows) || !ages.At.IsZero() && (e.Deadline == nil || e.ETASeconds != nil)
}

// TombstonesLost warns that deletes may be missed: a compacted topic may remove tombstones before the replay reads
// them, although the replay has already read the deleted values. since is the start of the replay; etaSeconds nil is
// unknown.
func TombstonesLost(t job.TopicFacts, now, since time.Time, etaSeconds *float64) reason.Reason {
	if !t.Compacted || t.DeleteRetentionMS < 0 {
		return reason.Reason{}
	}
	keeps := time.Duration(t.DeleteRetentionMS) * time.Millisecond
	took := now.Sub(since)
	switch {
	case took > keeps:
		return reason.TombstonesLost(t.Name, took, keeps)
	case etaSeconds != nil && took+Seconds(*etaSeconds) > keeps:
		return reason.TombstonesAtRisk(t.Name, took+Seconds(*etaSeconds), keeps)
	}
	return reason.Reason{}
}

// clocksApart is the assumed largest difference between the clocks of producers and of PostgreSQL.
const clocksApart = time.Minute

// FutureTimestamps warns, once for all partitions, of records with timestamps in the future; zero if there are none.
// The warning changes only with the findings.
func FutureTimestamps(now time.Time, rows []Observation) reason.Reason {
	var latest Observation
	ahead := 0
	for _, o := range rows {
		if o.RecordTime == nil || !o.RecordTime.After(now.Add(clocksApart)) {
			continue
		}
		if ahead++; latest.RecordTime == nil || o.RecordTime.After(*latest.RecordTime) {
			latest = o
		}
	}
	if ahead == 0 {
		return reason.Reason{}
	}
	return reason.FutureTimestamps(latest.Key, *latest.RecordTime, ahead-1)
}
