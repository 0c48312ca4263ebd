package reason

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// Codes of what a deployment waits for or ended with, and of answers to requests.
const (
	CodeStagedAsAsked     Code = "staged_as_asked"
	CodeCaughtUpAsAsked   Code = "caught_up_as_asked"
	CodeVerified          Code = "verified"
	CodeLive              Code = "live"
	CodeRolledBack        Code = "rolled_back"
	CodeRolledBackBecause Code = "rolled_back_because"
	CodeFailedTwice       Code = "check_failed_twice"
	CodeCannotRollBack    Code = "cannot_roll_back"
	CodeWindowOver        Code = "rollback_window_over"
	CodeWindowOverFailing Code = "rollback_window_over_failing"
	CodeBuildFailed       Code = "build_failed"
	CodeNotReady          Code = "not_ready"
	CodeUnhealthy         Code = "unhealthy"
	CodeFewRows           Code = "few_rows"
	CodeLiveChanged       Code = "live_changed"
	CodeUnreadable        Code = "view_unreadable"
)

func deploymentTexts() map[Code]string {
	return map[Code]string{
		CodeFewRows: `{{text .version}} has {{plural .rows "row" "rows"}}, less than a tenth of what readers see in ` +
			`{{text .live}}: it is not promoted automatically`,
		CodeStagedAsAsked:   `staged, as requested`,
		CodeCaughtUpAsAsked: `caught up, as requested`,
		CodeVerified: `{{text .version}} is verified and waits to be promoted` +
			`{{if .warnings}}; warning: {{list .warnings}}{{end}}`,
		CodeLive: `{{text .version}} is live{{if .standby}}; {{text .standby}} kept as standby for ` +
			`{{duration .keep}}{{end}}` +
			flipWarnings,
		CodeRolledBack: `rolled back: {{text .version}} is live again; {{text .standby}} kept as standby for ` +
			`{{duration .keep}}` +
			flipWarnings,
		CodeRolledBackBecause: `rolled back to {{text .version}}: {{text .cause}}`,
		CodeFailedTwice:       `check "{{text .check}}" failed twice in a row: {{text .detail}}`,
		CodeCannotRollBack:    `{{text .because}}; automatic rollback to {{text .to}} failed: {{text .cause}}`,
		CodeWindowOver:        `the rollback window is over`,
		CodeWindowOverFailing: `the rollback window of {{text .version}} is over and check "{{text .check}}" fails: ` +
			`{{text .detail}}; ` +
			`{{if .cause}}automatic rollback to {{text .to}} failed: {{text .cause}}{{else}}readers stay with it{{end}}`,
		CodeBuildFailed: `the table cannot be built: {{text .cause}}`,
		CodeNotReady:    `{{text .version}} is {{text .verdict}}: {{text .cause}}`,
		CodeUnhealthy:   `{{text .version}} is unhealthy: {{text .cause}}`,
		CodeUnreadable: `serve.columns or serve.where cannot be computed for every row of {{text .version}}, so that readers would get an ` +
			`error: {{text .cause}}`,
		CodeLiveChanged: `{{text .version}} was verified beside another live version: ` +
			`{{if .live}}{{text .live}} is live now{{else}}no version is live now{{end}}`,
	}
}

// flipWarnings are what a person who forced a flip has to know.
const flipWarnings = `{{if .behind}}` + "\n" + `warning: {{text .version}} was not up to date: {{text .behind}}; ` +
	`readers miss newer results until it has caught up{{end}}` +
	`{{if .readers}}` + "\n" +
	`warning: did not wait for {{plural .ignored "reader" "readers"}} with a snapshot older than the flip; ` +
	`those transactions may see values go backwards:{{lines .readers}}{{end}}`

// StagedAsAsked is a deployment that stops after staging.
func StagedAsAsked() Reason { return Reason{Code: CodeStagedAsAsked} }

// CaughtUpAsAsked is a deployment that stops when its version has caught up.
func CaughtUpAsAsked() Reason { return Reason{Code: CodeCaughtUpAsAsked} }

// Verified is a version that waits for a promote, with what was noted about it.
func Verified(ref job.Ref, warnings []Reason) Reason {
	return Reason{CodeVerified, Args{"version": ref.String(), "warnings": warnings}}
}

// Flip is what a promote or a rollback did.
type Flip struct {
	To      job.Ref
	Standby *job.Number // the version that readers left; nil: there was none
	Keep    time.Duration
	Behind  Reason   // why To was not up to date, when it was flipped to all the same
	Readers []string // with a snapshot older than the flip, which was not waited for
}

func (f Flip) args() Args {
	a := Args{"version": f.To.String(), "keep": seconds(f.Keep)}
	if f.Standby != nil {
		a["standby"] = f.Standby.String()
	}
	if !f.Behind.IsZero() {
		a["behind"] = f.Behind
	}
	if len(f.Readers) > 0 {
		a["readers"], a["ignored"] = f.Readers, len(f.Readers)
	}
	return a
}

// Live is a version that was promoted.
func Live(f Flip) Reason { return Reason{CodeLive, f.args()} }

// RolledBack is a version that readers went back to.
func RolledBack(f Flip) Reason { return Reason{CodeRolledBack, f.args()} }

// RolledBackBecause is a version that readers went back to without being asked.
func RolledBackBecause(to job.Ref, cause Reason) Reason {
	return Reason{CodeRolledBackBecause, Args{"version": to.String(), "cause": cause}}
}

// FailedTwice is a check that failed often enough for an automatic rollback.
func FailedTwice(check string, detail Reason) Reason {
	return Reason{CodeFailedTwice, Args{"check": check, "detail": detail}}
}

// CannotRollBack is an automatic rollback that is not possible.
func CannotRollBack(because Reason, to string, cause Reason) Reason {
	return Reason{CodeCannotRollBack, Args{"because": because, "to": to, "cause": cause}}
}

// WindowOver is the end of a rollback window.
func WindowOver() Reason { return Reason{Code: CodeWindowOver} }

// WindowOverFailing is the end of a rollback window with a check that fails; to and cause are of the automatic rollback
// that failed, else zero.
func WindowOverFailing(ref job.Ref, check string, detail Reason, to string, cause Reason) Reason {
	a := Args{"version": ref.String(), "check": check, "detail": detail}
	if !cause.IsZero() {
		a["to"], a["cause"] = to, cause
	}
	return Reason{CodeWindowOverFailing, a}
}

// BuildFailed is a table that cannot be built.
func BuildFailed(err error) Reason { return Reason{CodeBuildFailed, Args{"cause": err.Error()}} }

// NotReady is a version whose verdict keeps it from being promoted.
func NotReady(ref job.Ref, verdict job.Verdict, cause Reason) Reason {
	return Reason{CodeNotReady, Args{"version": ref.String(), "verdict": string(verdict), "cause": cause}}
}

// Unhealthy is a version that cannot be promoted before its fault is repaired.
func Unhealthy(ref job.Ref, cause Reason) Reason {
	return Reason{CodeUnhealthy, Args{"version": ref.String(), "cause": cause}}
}

// FewRows is a candidate whose view has so few rows beside live's that it is not promoted automatically.
func FewRows(version job.Ref, live job.Number, rows int64) Reason {
	return Reason{CodeFewRows, Args{"version": version.String(), "live": live.String(), "rows": rows}}
}

// Unreadable is a version whose view fails with an error for one of its rows.
func Unreadable(version job.Ref, cause string) Reason {
	return Reason{CodeUnreadable, Args{"version": version.String(), "cause": cause}}
}

// LiveChanged is a version that was verified beside another live version than the one that is live now; nil: none is.
func LiveChanged(version job.Ref, live *job.Number) Reason {
	a := Args{"version": version.String()}
	if live != nil {
		a["live"] = live.String()
	}
	return Reason{CodeLiveChanged, a}
}
