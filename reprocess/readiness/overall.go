package readiness

import (
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// Version holds the facts that decide the verdict on a version, in addition to its partitions.
type Version struct {
	Phase job.Phase
	// Unhealthy is why the version as a whole is unhealthy, for example because of too many dead letters; zero if it is
	// not.
	Unhealthy reason.Reason
	// WithinFor is how long every partition has been within its limits without interruption.
	WithinFor time.Duration
	StableFor time.Duration
}

// Overall returns the verdict on a version: that of its worst partition, in the order of job.Verdicts. A version whose
// partitions are within their limits is holding until StableFor has passed, then ready.
func Overall(parts []Judgement, v Version) Judgement {
	switch {
	case !v.Unhealthy.IsZero():
		return Judgement{job.Unhealthy, v.Unhealthy}
	case len(parts) == 0 && v.Phase == job.Staged:
		return Judgement{job.Starting, reason.RangesNotSet()}
	case len(parts) == 0:
		return Judgement{job.Unknown, reason.NoPartitions()}
	}
	worst, count := worstOf(parts)
	switch {
	case worst.Verdict == job.Ready && v.WithinFor < v.StableFor:
		return Judgement{job.Holding, reason.Holding(v.StableFor - v.WithinFor)}
	case worst.Verdict == job.Ready:
		return Judgement{job.Ready, reason.WithinLimits(len(parts))}
	case count > 1 && !ofVersion(worst.Reason.Code):
		worst.Reason = worst.Reason.More(count - 1)
	}
	return worst
}

// ofVersion reports whether a partition's reason concerns the whole version, so that all partitions have it.
func ofVersion(c reason.Code) bool {
	return c == reason.CodePaused || c == reason.CodeQueued || c == reason.CodeBuilding || c == reason.CodeRangesNotSet
}

// worstOf returns the first of the worst partitions, and how many have its verdict.
func worstOf(parts []Judgement) (worst Judgement, count int) {
	order := job.Verdicts()
	worst = slices.MinFunc(parts, func(a, b Judgement) int {
		return slices.Index(order, a.Verdict) - slices.Index(order, b.Verdict)
	})
	for _, p := range parts {
		if p.Verdict == worst.Verdict {
			count++
		}
	}
	return worst, count
}

// Within reports whether a verdict is within the limits, whether for long enough or not.
func Within(v job.Verdict) bool { return v == job.Ready || v == job.Holding }
