package tui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess"
)

// candidatePhase says that readers have not seen a version in this phase.
func candidatePhase(p job.Phase) bool {
	return slices.Contains([]job.Phase{job.Staged, job.Replaying, job.Building, job.CatchingUp, job.CaughtUp, job.Verified}, p)
}

// role is what a version is to the readers of the view.
func (t theme) role(v reprocess.VersionStatus) (sign string, as tone, name string) {
	switch {
	case v.Phase == job.Live:
		return t.live, live, "live"
	case candidatePhase(v.Phase):
		return t.candidate, candidate, "candidate"
	case v.Phase == job.Standby:
		return t.standby, standby, "standby"
	case v.Phase == job.Failed:
		return t.bad, bad, "failed"
	}
	return t.ended, dim, string(v.Phase)
}

// find is the version of that name; nil when there is none.
func find(s reprocess.Status, version string) *reprocess.VersionStatus {
	for i := range s.Versions {
		if s.Versions[i].Version == version {
			return &s.Versions[i]
		}
	}
	return nil
}

// liveOf is the version that readers see.
func liveOf(s reprocess.Status) *reprocess.VersionStatus {
	if s.Live == nil {
		return nil
	}
	return find(s, *s.Live)
}

// those are the versions of a job for which is holds, newest first.
func those(s reprocess.Status, is func(reprocess.VersionStatus) bool) []string {
	var out []string
	for _, v := range s.Versions {
		if is(v) {
			out = append(out, v.Version)
		}
	}
	return out
}

// main is the version that a line about a whole job is about: the one rolling out, else the newest candidate, else live,
// else the newest of all.
func mainVersion(s reprocess.Status) *reprocess.VersionStatus {
	for _, d := range s.Deployments {
		if v := find(s, d.Version); d.State == job.RollingOut && v != nil {
			return v
		}
	}
	for i := range s.Versions {
		if candidatePhase(s.Versions[i].Phase) {
			return &s.Versions[i]
		}
	}
	if v := liveOf(s); v != nil {
		return v
	}
	if len(s.Versions) > 0 {
		return &s.Versions[0]
	}
	return nil
}

// beside is the version that is shown beside live when v itself is live: the newest candidate, else the newest standby,
// else the newest other one.
func beside(s reprocess.Status) *reprocess.VersionStatus {
	l := liveOf(s)
	var best *reprocess.VersionStatus
	rank := func(v *reprocess.VersionStatus) int {
		switch {
		case candidatePhase(v.Phase):
			return 0
		case v.Phase == job.Standby:
			return 1
		}
		return 2
	}
	for i := range s.Versions {
		v := &s.Versions[i]
		if v != l && (best == nil || rank(v) < rank(best)) {
			best = v
		}
	}
	return best
}

// worstFirst orders partitions as they want a look: by verdict, then by unread records.
func worstFirst(parts []reprocess.PartitionStatus) []reprocess.PartitionStatus {
	order := job.Verdicts()
	out := slices.Clone(parts)
	slices.SortStableFunc(out, func(a, b reprocess.PartitionStatus) int {
		return cmp.Or(
			cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict)),
			cmp.Compare(orZero(b.LagRecords), orZero(a.LagRecords)),
			cmp.Compare(a.Topic, b.Topic),
			cmp.Compare(a.Partition, b.Partition),
		)
	})
	return out
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// health is the sign and the tone of a verdict, its words, and why it is so unless that only repeats the numbers beside it. What somebody
// paused has not stalled, and what waits for its turn is queued.
func (t theme) health(v job.Verdict, reason string) (sign string, as tone, words, why string) {
	sign, as = t.verdictLook(v)
	turn, queued := turnOf(v, reason)
	switch {
	case v == job.Stalled && strings.HasPrefix(reason, "paused"):
		return t.warn, warn, "paused", ""
	case queued:
		return sign, as, "queued", ": " + turn
	case reason == "" || reason == verdictWords(v) || v == job.Ready || v == job.ReplayingRanges:
		return sign, as, verdictWords(v), ""
	}
	return sign, as, verdictWords(v), ": " + reason
}

// turnOf is what a version or a partition that is queued waits for, without how many partitions do.
func turnOf(v job.Verdict, reason string) (turn string, queued bool) {
	turn, queued = strings.CutPrefix(reason, "queued: ")
	turn, _, _ = strings.Cut(turn, " (and ")
	return turn, queued && v == job.Starting
}

// troubled says that a version wants a look or an act.
func (t theme) troubled(v reprocess.VersionStatus) bool {
	_, as, _, _ := t.health(v.Verdict, v.Reason)
	return as == warn || as == bad
}

// verdictLook is the sign and the tone of a verdict.
func (t theme) verdictLook(v job.Verdict) (sign string, as tone) {
	switch v {
	case job.Ready:
		return t.good, live
	case job.Unhealthy, job.Stalled:
		return t.bad, bad
	case job.Unknown, job.BlockedByTxn, job.NotConverging:
		return t.warn, warn
	case job.Starting, job.ReplayingRanges, job.Lagging, job.Holding:
	}
	return t.dot, candidate
}
