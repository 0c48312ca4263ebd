package readiness

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// The limits of the verdict.
const (
	stalledAfter       = 30 * time.Second // no progress although there are unread records
	replayStalledAfter = 2 * time.Minute  // a replay shows progress only when a segment is done
	blockedAfter       = time.Minute      // the last stable offset remains below the end
	convergingWithin   = time.Minute      // a lag above the limit must be smaller than it was this long ago
)

// Judgement is the verdict on a partition or a version, with its reason.
type Judgement struct {
	Verdict job.Verdict
	Reason  reason.Reason
}

// Judge returns whether a partition is within the limits; the first matching rule wins. It never returns holding,
// because only Overall knows how long a version has been within its limits.
func Judge(s Sample, limits job.ReadySettings) Judgement {
	j := judge(s, limits)
	if s.Live != nil && s.Position >= *s.Live && !s.replaying() && excusable(j.Verdict) {
		return Judgement{job.Ready, reason.LevelWithLive(j.Reason)}
	}
	return j
}

// excusable reports whether readers may use a version with this verdict if it is no further behind than the version
// they read now.
func excusable(v job.Verdict) bool {
	return v == job.BlockedByTxn || v == job.NotConverging || v == job.Lagging
}

func judge(s Sample, limits job.ReadySettings) Judgement {
	switch {
	case s.Fault.Kind != job.FaultNone:
		// The fault is in our own rows: it is known even if the broker is not.
		return Judgement{job.Unhealthy, reason.Fault(s.Partition, s.Fault)}
	case !s.Unknown.IsZero():
		return Judgement{job.Unknown, s.Unknown}
	case s.Phase == job.Staged:
		return Judgement{job.Starting, reason.RangesNotSet()}
	case s.End < s.LastStable || (!s.replaying() && s.End < s.Position):
		return Judgement{job.Unknown, reason.EndOutdated(s.End, max(s.Position, s.LastStable))}
	case s.Paused:
		return Judgement{job.Stalled, reason.Paused()}
	case s.replaying():
		return judgeReplay(s)
	case !s.Owned && s.Unowned < stalledAfter:
		return Judgement{job.Starting, reason.NoWorkerYet()}
	case !s.Owned:
		return Judgement{job.Stalled, reason.NoWorker()}
	}
	return judgeLive(s, limits)
}

func judgeReplay(s Sample) Judgement {
	switch {
	case !s.Queued.IsZero():
		return Judgement{job.Starting, s.Queued}
	case s.Remaining > 0 && s.Idle >= replayStalledAfter:
		return Judgement{job.Stalled, reason.ReplayStalled(s.Idle, s.Unread())}
	case s.Phase == job.Building:
		return Judgement{job.ReplayingRanges, reason.Building()}
	case s.Remaining == 0 && s.End <= s.FrozenEnd:
		return Judgement{job.ReplayingRanges, reason.RangeRead()}
	}
	return Judgement{job.ReplayingRanges, reason.Replaying(s.Remaining, max(0, s.End-s.FrozenEnd))}
}

func judgeLive(s Sample, limits job.ReadySettings) Judgement {
	unread, held := s.Unread(), s.End-s.LastStable
	behind := reason.Behind(s.Readable(), s.LagTime)
	if s.AtLeast {
		behind = reason.BehindAtLeast(s.Readable(), s.LagTime)
	}
	within := unread == 0 || (!s.AtLeast && s.LagTime <= limits.MaxLagTime) ||
		(limits.MaxLag > 0 && unread <= limits.MaxLag)
	switch {
	case held > 0 && s.Held >= blockedAfter:
		return Judgement{job.BlockedByTxn, reason.OpenTransaction(s.Readable(), held, s.Held)}
	case s.Readable() > 0 && s.Idle >= stalledAfter:
		return Judgement{job.Stalled, reason.Stalled(s.Idle, behind)}
	case within && unread == 0:
		return Judgement{job.Ready, reason.AllRead()}
	case within:
		return Judgement{job.Ready, s.orHeld(behind)}
	case held > 0 && s.Readable() == 0:
		return Judgement{job.Lagging, reason.OpenTransaction(0, held, s.Held)}
	case s.Before != nil && s.Readable() >= *s.Before:
		return Judgement{job.NotConverging, reason.NotConverging(behind, *s.Before)}
	}
	return Judgement{job.Lagging, behind}
}

// orHeld returns the reason of a sample whose unread records are all held back by an open transaction, otherwise
// behind.
func (s Sample) orHeld(behind reason.Reason) reason.Reason {
	if s.Readable() == 0 {
		return reason.OpenTransaction(0, s.End-s.LastStable, s.Held)
	}
	return behind
}

// ExitCode returns the exit code for a version with this kind of fault.
func ExitCode(k job.FaultKind) job.ExitCode {
	switch k {
	case job.FaultGap, job.FaultRecreated, job.FaultArchive:
		return job.ExitGap
	case job.FaultNone, job.FaultMissing, job.FaultTooLarge, job.FaultQuery, job.FaultRecord, job.FaultTable,
		job.FaultEpochs, job.FaultProgram:
	}
	return job.ExitUnhealthy
}

// Fatal reports whether a fault ends a candidate: every retry runs the same query over the same records.
func Fatal(k job.FaultKind) bool { return k == job.FaultQuery || k == job.FaultRecord }
