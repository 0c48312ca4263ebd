package reason

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// Codes of why a try of an act failed although the next one may succeed, and of the end of the tries.
const (
	CodePhaseChanged   Code = "phase_changed"
	CodeRowsInUse      Code = "rows_in_use"
	CodeCommitUnknown  Code = "commit_unknown"
	CodeLockNotGranted Code = "lock_not_granted"
	CodeBarrierEnded   Code = "barrier_ended"
	CodeOlderSnapshots Code = "older_snapshots"
	CodeNotTakenUp     Code = "partition_not_taken_up"
	CodeGaveUp         Code = "gave_up"
)

// needlessWait tells that the right to see when transactions began is missing.
const needlessWait = `{{if not .all}}; without pg_read_all_stats newer ones cannot be told from older ones, so this may ` +
	`wait needlessly{{end}}`

func tryTexts() map[Code]string {
	return map[Code]string{
		CodePhaseChanged:  `{{text .version}} is no longer {{text .phase}}{{if .now}} but {{text .now}}{{end}}`,
		CodeRowsInUse:     `rows of the job are in use`,
		CodeCommitUnknown: `the outcome of the commit is unknown`,
		CodeLockNotGranted: `a lock on {{text .kind}} {{text .relation}} was not granted within {{duration .limit}}` +
			`{{lines .holders}}`,
		CodeBarrierEnded: `the barrier ended before the flip`,
		CodeOlderSnapshots: `readers have a snapshot open that is older than the flip; they could see values go backwards ` +
			`(--ignore-snapshots flips without waiting for them)` + needlessWait + `{{lines .readers}}`,
		CodeNotTakenUp: `{{text .version}} has not taken up {{text .at}} yet, a new partition that {{text .live}} reads`,
		CodeGaveUp:     `{{text .verb}} of {{text .what}} gave up after {{duration .after}}: {{text .cause}}`,
	}
}

// PhaseChanged is a version that is in another phase by now; now is empty when that phase was not read.
func PhaseChanged(ref job.Ref, phase, now job.Phase) Reason {
	return optional(CodePhaseChanged, Args{"version": ref.String(), "phase": string(phase)}, "now", string(now))
}

// RowsInUse is rows of the control tables that another transaction holds.
func RowsInUse() Reason { return Reason{Code: CodeRowsInUse} }

// CommitUnknown is a commit whose answer was lost.
func CommitUnknown() Reason { return Reason{Code: CodeCommitUnknown} }

// LockNotGranted is a lock on a relation of a kind (view, relation) that its holders did not release in time.
func LockNotGranted(kind string, relation job.ViewName, limit time.Duration, holders []string) Reason {
	return Reason{CodeLockNotGranted, Args{
		"kind": kind, "relation": relation.String(), "limit": seconds(limit), "holders": holders,
	}}
}

// BarrierEnded is a barrier that ended before the flip.
func BarrierEnded() Reason { return Reason{Code: CodeBarrierEnded} }

// OlderSnapshots is readers with a snapshot older than the flip; all is false when some may be newer, because the right
// to see when transactions began is missing.
func OlderSnapshots(readers []string, all bool) Reason {
	return Reason{CodeOlderSnapshots, Args{"readers": readers, "all": all}}
}

// NotTakenUp is a candidate that does not read a new partition yet, which live reads.
func NotTakenUp(ref, live job.Ref, at job.Partition) Reason {
	return Reason{CodeNotTakenUp, Args{"version": ref.String(), "live": live.String(), "at": at.String()}}
}

// GaveUp is the end of the tries of an act on a version, or on a job.
func GaveUp(verb, what string, after time.Duration, cause Reason) Reason {
	return Reason{CodeGaveUp, Args{"verb": verb, "what": what, "after": seconds(after), "cause": cause}}
}
