package reason

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// Codes of refusals to promote, roll back, abort, pause, resume or retire a version.
const (
	CodeAlreadyLive       Code = "already_live"
	CodeNotKeptUp         Code = "adopted_not_kept_up"
	CodeInPhase           Code = "in_phase"
	CodeNotCaughtUp       Code = "not_caught_up"
	CodeHookRefused       Code = "hook_refused"
	CodeNothingLive       Code = "nothing_live"
	CodeNotStandby        Code = "not_standby"
	CodeAdoptedIsOld      Code = "adopted_is_old"
	CodeStandbyStale      Code = "standby_stale"
	CodeStandbyPaused     Code = "standby_paused"
	CodeStandbyNotReady   Code = "standby_not_ready"
	CodeStandbyLacks      Code = "standby_lacks_records"
	CodeNeverSampled      Code = "behind_never_sampled"
	CodeEndUnknown        Code = "behind_end_unknown"
	CodeBehindAsOf        Code = "behind_as_of"
	CodeIsLive            Code = "is_live"
	CodeNeverLive         Code = "never_live"
	CodeInsideWindow      Code = "inside_rollback_window"
	CodeTableRead         Code = "table_is_read"
	CodeReadersHold       Code = "readers_hold_snapshot"
	CodeCannotAbort       Code = "cannot_abort"
	CodeAdoptedIdle       Code = "adopted_idle"
	CodeNothingToPause    Code = "nothing_to_pause"
	CodeNoSuchGap         Code = "no_such_gap"
	CodeNothingToKeep     Code = "nothing_to_keep"
	CodeDeploymentRolling Code = "deployment_rolling_out"
)

// losesNewer ends the refusals to go back to a version that is behind.
const losesNewer = `; it is {{text .behind}}; going back to it loses newer results`

func refusalTexts() map[Code]string {
	return map[Code]string{
		CodeAlreadyLive: `{{text .version}} is live already`,
		CodeNotKeptUp:   `{{text .version}} is an adopted table that kappactl does not update: readers can only go back to it`,
		CodeInPhase:     `{{text .version}} is {{text .phase}}`,
		CodeNotCaughtUp: `{{text .version}} is {{text .phase}}: {{text .verdict}}` +
			`{{if .cause}}: {{text .cause}}{{end}}`,
		CodeHookRefused: `{{text .version}} is not promoted: hook {{text .hook}} refused: {{text .cause}}`,
		CodeNothingLive: `job "{{text .job}}" has no live version to roll back from`,
		CodeNotStandby:  `{{text .version}} is {{text .phase}} and not standby: readers cannot go back to it`,
		CodeAdoptedIsOld: `{{text .version}} is {{text .table}} as it was adopted: kappactl has not written to it, so ` +
			`going back to it loses newer results`,
		CodeStandbyStale:  `{{text .version}} is standby (stale since {{text .since}}): {{text .cause}}` + losesNewer,
		CodeStandbyPaused: `{{text .version}} is standby and paused since {{text .since}}` + losesNewer,
		CodeStandbyNotReady: `{{text .version}} is standby and {{text .verdict}}: {{text .cause}}` +
			`{{if .behind}}` + losesNewer + `{{end}}`,
		CodeStandbyLacks: `{{text .version}} is standby and lacks records that {{text .live}}, which is live, has: ` +
			`going back to it loses them{{lines .losses}}`,
		CodeNeverSampled: `behind by an unknown amount: it was never sampled`,
		CodeEndUnknown:   `behind by an unknown amount: the brokers do not report the end of the log`,
		CodeBehindAsOf:   `{{text .behind}}, as of {{duration .age}} ago`,
		CodeIsLive:       `{{text .version}} is live: readers see it`,
		CodeNeverLive:    `{{text .version}} was never live: abort it`,
		CodeInsideWindow: `{{text .version}} is inside its rollback window until {{text .until}}`,
		CodeTableRead:    `other relations read the table of {{text .version}}: {{list .relations}}`,
		CodeReadersHold: `readers have a snapshot open that is older than the flip` + needlessWait +
			`:{{lines .readers}}`,
		CodeCannotAbort:       `{{text .version}} is {{text .phase}}: it can no longer be aborted`,
		CodeAdoptedIdle:       `{{text .version}} was adopted: kappactl does no work on it`,
		CodeNothingToPause:    `{{text .version}} is {{text .phase}}: there is nothing to pause or resume`,
		CodeNoSuchGap:         `{{text .version}} has no gap {{text .gap}}`,
		CodeNothingToKeep:     `{{text .version}} is {{text .phase}}: there is nothing to keep`,
		CodeDeploymentRolling: `another deployment of {{text .job}} is rolling out; a job has one at a time`,
	}
}

// AlreadyLive is a version that readers see already.
func AlreadyLive(ref job.Ref) Reason { return Reason{CodeAlreadyLive, Args{"version": ref.String()}} }

// NotKeptUp is an adopted relation that was to be promoted.
func NotKeptUp(ref job.Ref) Reason { return Reason{CodeNotKeptUp, Args{"version": ref.String()}} }

// InPhase is a version whose phase does not allow what was asked for.
func InPhase(ref job.Ref, phase job.Phase) Reason { return inPhase(CodeInPhase, ref, phase) }

// NotCaughtUp is a version that has yet to replay or to catch up; cause may be zero.
func NotCaughtUp(ref job.Ref, phase job.Phase, verdict job.Verdict, cause Reason) Reason {
	r := inPhase(CodeNotCaughtUp, ref, phase).with("verdict", string(verdict))
	if cause.IsZero() {
		return r
	}
	return r.with("cause", cause)
}

// HookRefused is a promote that a hook refused.
func HookRefused(ref job.Ref, hook, cause string) Reason {
	return Reason{CodeHookRefused, Args{"version": ref.String(), "hook": hook, "cause": cause}}
}

// NothingLive is a rollback of a job without a live version.
func NothingLive(name job.Name) Reason { return Reason{CodeNothingLive, Args{"job": string(name)}} }

// NotStandby is a version that readers cannot go back to.
func NotStandby(ref job.Ref, phase job.Phase) Reason { return inPhase(CodeNotStandby, ref, phase) }

// AdoptedIsOld is an adopted relation that readers were to go back to.
func AdoptedIsOld(ref job.Ref, table job.ViewName) Reason {
	return Reason{CodeAdoptedIsOld, Args{"version": ref.String(), "table": table.String()}}
}

// StandbyStale is a standby version that stopped for a cause.
func StandbyStale(ref job.Ref, since time.Time, cause, behind Reason) Reason {
	return Reason{CodeStandbyStale, Args{"version": ref.String(), "since": Time(since), "cause": cause, "behind": behind}}
}

// StandbyPaused is a standby version that a person paused.
func StandbyPaused(ref job.Ref, since time.Time, behind Reason) Reason {
	return Reason{CodeStandbyPaused, Args{"version": ref.String(), "since": Time(since), "behind": behind}}
}

// StandbyNotReady is a standby version whose verdict keeps readers from going back to it; behind may be zero.
func StandbyNotReady(ref job.Ref, verdict job.Verdict, cause, behind Reason) Reason {
	a := Args{"version": ref.String(), "verdict": string(verdict), "cause": cause}
	if !behind.IsZero() {
		a["behind"] = behind
	}
	return Reason{CodeStandbyNotReady, a}
}

// StandbyLacks is a standby version that skipped records which live has read.
func StandbyLacks(ref, live job.Ref, losses []Reason) Reason {
	return Reason{CodeStandbyLacks, Args{"version": ref.String(), "live": live.String(), "losses": losses}}
}

// NeverSampled is how far a version is behind of which there is no sample.
func NeverSampled() Reason { return Reason{Code: CodeNeverSampled} }

// EndUnknown is how far a version is behind when the end of a partition is unknown.
func EndUnknown() Reason { return Reason{Code: CodeEndUnknown} }

// BehindAsOf is how far a version was behind some time ago.
func BehindAsOf(behind Reason, age time.Duration) Reason {
	return Reason{CodeBehindAsOf, Args{"behind": behind, "age": seconds(age)}}
}

// IsLive is a version that readers see, and that may therefore not be paused or retired.
func IsLive(ref job.Ref) Reason { return Reason{CodeIsLive, Args{"version": ref.String()}} }

// NeverLive is a candidate that was to be retired.
func NeverLive(ref job.Ref) Reason { return Reason{CodeNeverLive, Args{"version": ref.String()}} }

// InsideWindow is a version that readers may go back to until a time.
func InsideWindow(ref job.Ref, until time.Time) Reason {
	return Reason{CodeInsideWindow, Args{"version": ref.String(), "until": Time(until)}}
}

// TableRead is a version whose table other relations read.
func TableRead(ref job.Ref, relations []string) Reason {
	return Reason{CodeTableRead, Args{"version": ref.String(), "relations": relations}}
}

// ReadersHold is readers that may still see a version; all as for OlderSnapshots.
func ReadersHold(readers []string, all bool) Reason {
	return Reason{CodeReadersHold, Args{"readers": readers, "all": all}}
}

// CannotAbort is a version that has gone too far to be aborted.
func CannotAbort(ref job.Ref, phase job.Phase) Reason { return inPhase(CodeCannotAbort, ref, phase) }

// AdoptedIdle is an adopted relation that was to be paused or resumed.
func AdoptedIdle(ref job.Ref) Reason { return Reason{CodeAdoptedIdle, Args{"version": ref.String()}} }

// NothingToPause is a version in a phase in which no work is done.
func NothingToPause(ref job.Ref, phase job.Phase) Reason {
	return inPhase(CodeNothingToPause, ref, phase)
}

// NoSuchGap is a gap that was to be accepted and that the version does not have.
func NoSuchGap(ref job.Ref, gap string) Reason {
	return Reason{CodeNoSuchGap, Args{"version": ref.String(), "gap": gap}}
}

// NothingToKeep is a version that was to be pinned after its end.
func NothingToKeep(ref job.Ref, phase job.Phase) Reason {
	return inPhase(CodeNothingToKeep, ref, phase)
}

// DeploymentRolling is a second deployment of a job at the same time.
func DeploymentRolling(name job.Name) Reason {
	return Reason{CodeDeploymentRolling, Args{"job": string(name)}}
}

func inPhase(code Code, ref job.Ref, phase job.Phase) Reason {
	return Reason{code, Args{"version": ref.String(), "phase": string(phase)}}
}
