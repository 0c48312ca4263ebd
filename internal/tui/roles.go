package tui

import (
	"cmp"
	"slices"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// role is the role of a version for the readers of the view.
func (t theme) role(v status.Version) (sign string, as tone, name string) {
	switch {
	case v.Phase == job.Live:
		return t.live, live, "live"
	case ledger.Candidate(v.Phase):
		return t.candidate, candidate, "candidate"
	case v.Phase == job.Standby:
		return t.standby, standby, "standby"
	case v.Phase == job.Failed:
		return t.bad, bad, "failed"
	}
	return t.ended, dim, string(v.Phase)
}

// those are the versions of a job for which is holds, newest first.
func those(s status.Job, is func(status.Version) bool) []string {
	var out []string
	for _, v := range s.Versions {
		if is(v) {
			out = append(out, v.Version)
		}
	}
	return out
}

// shown is the version that a line about a whole job shows: the one that is rolling out, else the job's main one, else
// the newest of all.
func shown(s status.Job) *status.Version {
	for _, d := range s.Deployments {
		if v := s.Find(d.Version); d.State == job.RollingOut && v != nil {
			return v
		}
	}
	if v := s.Main(); v != nil {
		return v
	}
	if len(s.Versions) > 0 {
		return &s.Versions[0]
	}
	return nil
}

// beside is the version that is shown beside live when v itself is live: the newest candidate, else the newest standby,
// else the newest other one.
func beside(s status.Job) *status.Version {
	l := s.LiveVersion()
	var best *status.Version
	rank := func(v *status.Version) int {
		switch {
		case ledger.Candidate(v.Phase):
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
func worstFirst(parts []status.Partition) []status.Partition {
	order := job.Verdicts()
	out := slices.Clone(parts)
	slices.SortStableFunc(out, func(a, b status.Partition) int {
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

// health is the sign and the tone of a verdict, its words, and its reason unless that only repeats the numbers beside
// it. A paused version has not stalled, and one that waits for a replay slot is queued.
func (t theme) health(v job.Verdict, code reason.Code, text string) (sign string, as tone, words, why string) {
	sign, as = t.verdictLook(v)
	switch {
	case code == reason.CodePaused:
		return t.warn, warn, "paused", ""
	case code == reason.CodeQueued:
		return sign, as, "queued", ": " + text
	case text == "" || v == job.Ready || v == job.ReplayingRanges:
		return sign, as, verdictWords(v), ""
	}
	return sign, as, verdictWords(v), ": " + text
}

// troubled reports whether a version needs attention.
func (t theme) troubled(v status.Version) bool {
	_, as, _, _ := t.health(v.Verdict, v.ReasonCode, v.Reason)
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
