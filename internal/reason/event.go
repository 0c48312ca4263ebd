package reason

import "github.com/kappactl/kappactl/internal/job"

// Codes of events in the history of a job that have no other reason.
const (
	CodePhase             Code = "phase"
	CodePartitionsAdded   Code = "partitions_added"
	CodeStagedAs          Code = "staged_as"
	CodeStandbyDeployed   Code = "standby_deployed"
	CodeToApply           Code = "to_apply_in_place"
	CodeApplied           Code = "applied_in_place"
	CodeReplayExtended    Code = "replay_extended"
	CodeStepTook          Code = "step_took"
	CodeCleaned           Code = "cleaned"
	CodeBeforePromote     Code = "before_promote"
	CodeHookTold          Code = "hook_told"
	CodeHookFailed        Code = "hook_failed"
	CodeWindowEndedByFlip Code = "rollback_window_ended_by_flip"
	CodeGapAccepted       Code = "gap_accepted"
	CodePinned            Code = "pinned"
	CodeUnpinned          Code = "unpinned"
	CodeDropBegins        Code = "drop_begins"
)

func eventTexts() map[Code]string {
	return map[Code]string{
		CodePhase: `{{text .from}} → {{text .to}}: {{text .on}}`,
		CodePartitionsAdded: `{{plural .added "partition was" "partitions were"}} added, read from the first offset; ` +
			`keys may have moved between partitions`,
		CodeStagedAs:        `staged as {{text .hash}}`,
		CodeStandbyDeployed: `the same version is standby: nothing is replayed`,
		CodeToApply:         `the live version stays; to be applied in place: {{list .changed}}`,
		CodeApplied:         `applied in place: {{list .changed}}; nothing is replayed`,
		CodeReplayExtended:  `{{plural .arrived "record" "records"}} arrived since the replay ranges were set`,
		CodeStepTook:        `{{text .step}} took {{printf "%.1f" .seconds}}s`,
		CodeCleaned: `{{if .kept}}positions and consumer group are deleted; table {{text .kept}} stays` +
			`{{else}}table, positions and consumer group are deleted{{end}}`,
		CodeBeforePromote:     `{{text .version}} is about to be promoted`,
		CodeHookTold:          `hook {{text .hook}} was told of {{text .event}}`,
		CodeHookFailed:        `hook {{text .hook}}, told of {{text .event}}: {{text .cause}}`,
		CodeWindowEndedByFlip: `the flip to another version ended its rollback window`,
		CodeGapAccepted:       `{{text .version}} skips {{text .gap}}: its results lack these offsets`,
		CodePinned:            `{{text .version}} is pinned`,
		CodeUnpinned:          `{{text .version}} is unpinned`,
		CodeDropBegins:        `{{range $i, $step := .steps}}{{if $i}}; {{end}}{{text $step}}{{end}}`,
	}
}

// Phase is a version that went from one phase to another.
func Phase(from, to job.Phase, on string) Reason {
	return Reason{CodePhase, Args{"from": string(from), "to": string(to), "on": on}}
}

// PartitionsAdded is partitions that appeared after the version was staged.
func PartitionsAdded(added int) Reason { return Reason{CodePartitionsAdded, Args{"added": added}} }

// StagedAs is a new version with the hash of what changes its output.
func StagedAs(hash string) Reason { return Reason{CodeStagedAs, Args{"hash": hash}} }

// StandbyDeployed is a deployment of a version that is standby.
func StandbyDeployed() Reason { return Reason{Code: CodeStandbyDeployed} }

// ToApply is a deployment that changes keys of the live version's job file in place.
func ToApply(changed []string) Reason { return Reason{CodeToApply, Args{"changed": changed}} }

// Applied is keys of a job file that were changed in place.
func Applied(changed []string) Reason { return Reason{CodeApplied, Args{"changed": changed}} }

// ReplayExtended is a replay that also reads what arrived since its ranges were set.
func ReplayExtended(arrived int64) Reason {
	return Reason{CodeReplayExtended, Args{"arrived": arrived}}
}

// StepTook is a step of a build that is done.
func StepTook(step string, seconds float64) Reason {
	return Reason{CodeStepTook, Args{"step": step, "seconds": seconds}}
}

// Cleaned is a version of which nothing is left but, unless it is empty, its table.
func Cleaned(keptTable string) Reason { return optional(CodeCleaned, Args{}, "kept", keptTable) }

// BeforePromote is a version whose hooks are asked.
func BeforePromote(ref job.Ref) Reason {
	return Reason{CodeBeforePromote, Args{"version": ref.String()}}
}

// HookTold is a hook that succeeded.
func HookTold(hook string, event job.HookEvent) Reason {
	return Reason{CodeHookTold, Args{"hook": hook, "event": string(event)}}
}

// HookFailed is a hook that failed or refused.
func HookFailed(hook string, event job.HookEvent, cause string) Reason {
	return Reason{CodeHookFailed, Args{"hook": hook, "event": string(event), "cause": cause}}
}

// WindowEndedByFlip is a rollback window that another promote or a rollback ended.
func WindowEndedByFlip() Reason { return Reason{Code: CodeWindowEndedByFlip} }

// GapAccepted is a range of offsets that a version skips.
func GapAccepted(ref job.Ref, gap string) Reason {
	return Reason{CodeGapAccepted, Args{"version": ref.String(), "gap": gap}}
}

// Pinned is a version that is kept until it is unpinned.
func Pinned(ref job.Ref) Reason { return Reason{CodePinned, Args{"version": ref.String()}} }

// Unpinned is a version that is no longer kept.
func Unpinned(ref job.Ref) Reason { return Reason{CodeUnpinned, Args{"version": ref.String()}} }

// DropBegins lists the steps of dropping a job, one sentence each.
func DropBegins(steps []string) Reason { return Reason{CodeDropBegins, Args{"steps": steps}} }

// optional is a reason with one argument more unless its value is empty.
func optional(code Code, args Args, name, value string) Reason {
	if value != "" {
		args[name] = value
	}
	return Reason{code, args}
}
