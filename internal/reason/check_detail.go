package reason

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// Codes of why a check has its outcome.
const (
	CodeCheckFalse         Code = "check_returned_false"
	CodeCheckNull          Code = "check_returned_null"
	CodeCheckRows          Code = "check_returned_rows"
	CodeCheckColumns       Code = "check_returned_columns"
	CodeCheckType          Code = "check_returned_type"
	CodeCheckError         Code = "check_error"
	CodeCheckWrites        Code = "check_writes"
	CodeCheckWritesInWith  Code = "check_writes_in_with"
	CodeCheckTimedOut      Code = "check_timed_out"
	CodeCheckCancelled     Code = "check_cancelled"
	CodeCheckCutOff        Code = "check_connection_ended"
	CodeCheckNotRun        Code = "check_not_run"
	CodeRoleNeedsTemporary Code = "checks_role_needs_temporary"
	CodeRoleNeedsLanguage  Code = "checks_role_needs_language"
	CodeVersionsApart      Code = "versions_apart"
	CodeBarrierExpired     Code = "barrier_expired"
	CodeBarrierTaken       Code = "barrier_taken"
	CodeNoLiveVersion      Code = "no_live_version"
	CodeLiveIsDown         Code = "live_is_down"
	CodeNotHeld            Code = "not_held"
	CodeNoPrevious         Code = "no_previous_version"
	CodePreviousIs         Code = "previous_is"
	CodePreviousUnhealthy  Code = "previous_unhealthy"
	CodeStoppedAt          Code = "stopped_at"
	CodeIsStalled          Code = "is_stalled"
	CodeIsPaused           Code = "is_paused"
)

func checkDetailTexts() map[Code]string {
	const oneRow = `; a check returns one row with one boolean`
	const readOnly = `it writes, and checks only read: `
	return map[Code]string{
		CodeCheckFalse:        `it returned false`,
		CodeCheckNull:         `it returned NULL; write coalesce(…, false) where that is a failure`,
		CodeCheckRows:         `it returned {{plural .rows "row" "rows"}}` + oneRow,
		CodeCheckColumns:      `it returned {{plural .columns "column" "columns"}}` + oneRow,
		CodeCheckType:         `its value is {{text .type}}` + oneRow,
		CodeCheckError:        `{{text .cause}}`,
		CodeCheckWrites:       readOnly + `{{text .cause}}`,
		CodeCheckWritesInWith: readOnly + `a WITH in it inserts, updates, deletes or merges`,
		CodeCheckTimedOut:     `no answer within {{duration .limit}}`,
		CodeCheckCancelled:    `it was cancelled in PostgreSQL`,
		CodeCheckCutOff:       `the connection to PostgreSQL ended during the check`,
		CodeCheckNotRun:       `not run: the connection to PostgreSQL ended during check "{{text .check}}"`,
		CodeRoleNeedsTemporary: `role {{text .role}} runs checks and may not create temporary objects: ` +
			`GRANT TEMPORARY ON DATABASE {{text .database}} TO {{text .role}}`,
		CodeRoleNeedsLanguage: `role {{text .role}} runs checks and may not use the language of the function ` +
			`that they run in: GRANT USAGE ON LANGUAGE plpgsql TO {{text .role}}`,
		CodeVersionsApart:     `{{text .a}} and {{text .b}} did not reach the same offsets within {{duration .within}}`,
		CodeBarrierExpired:    `the versions were not held long enough for the checks to begin`,
		CodeBarrierTaken:      `{{text .cause}}`,
		CodeNoLiveVersion:     `no live version to compare with`,
		CodeNotHeld:           `{{text .version}} does not stop at given offsets, so it cannot be compared with`,
		CodeLiveIsDown:        `{{text .live}}, which is live, cannot be compared with: {{text .cause}}`,
		CodeNoPrevious:        `no version was live before`,
		CodePreviousIs:        `{{text .version}}, which was live before, is {{text .state}}`,
		CodePreviousUnhealthy: `{{text .version}}, which was live before, is unhealthy: {{text .cause}}`,
		CodeStoppedAt:         `it stopped at {{text .at}}: {{text .cause}}`,
		CodeIsStalled:         `it is stalled: {{text .cause}}`,
		CodeIsPaused:          `it is paused`,
	}
}

// CheckFalse is a check whose query returned false.
func CheckFalse() Reason { return Reason{Code: CodeCheckFalse} }

// CheckNull is a check whose query returned NULL.
func CheckNull() Reason { return Reason{Code: CodeCheckNull} }

// CheckRows is a check whose query did not return exactly one row.
func CheckRows(rows int64) Reason { return Reason{CodeCheckRows, Args{"rows": rows}} }

// CheckColumns is a check whose query does not return exactly one column.
func CheckColumns(columns int) Reason { return Reason{CodeCheckColumns, Args{"columns": columns}} }

// CheckType is a check whose query returns a value of another type than boolean.
func CheckType(name string) Reason { return Reason{CodeCheckType, Args{"type": name}} }

// CheckError is an error of PostgreSQL, or on the way to it, under a check.
func CheckError(cause string) Reason { return Reason{CodeCheckError, Args{"cause": cause}} }

// CheckWrites is a check that PostgreSQL refused because it writes.
func CheckWrites(cause string) Reason { return Reason{CodeCheckWrites, Args{"cause": cause}} }

// CheckWritesInWith is a check with a WITH that writes.
func CheckWritesInWith() Reason { return Reason{Code: CodeCheckWritesInWith} }

// CheckTimedOut is a check that took longer than its timeout.
func CheckTimedOut(limit time.Duration) Reason {
	return Reason{CodeCheckTimedOut, Args{"limit": seconds(limit)}}
}

// CheckCancelled is a check that was cancelled in PostgreSQL before its timeout.
func CheckCancelled() Reason { return Reason{Code: CodeCheckCancelled} }

// CheckCutOff is a check under which the connection ended.
func CheckCutOff() Reason { return Reason{Code: CodeCheckCutOff} }

// CheckNotRun is a check that comes after the one under which the connection ended.
func CheckNotRun(after string) Reason { return Reason{CodeCheckNotRun, Args{"check": after}} }

// RoleNeedsTemporary is a role of checks without the right to create temporary objects; both names are quoted.
func RoleNeedsTemporary(role, database string) Reason {
	return Reason{CodeRoleNeedsTemporary, Args{"role": role, "database": database}}
}

// RoleNeedsLanguage is a role of checks without the right to use PL/pgSQL; its name is quoted.
func RoleNeedsLanguage(role string) Reason { return Reason{CodeRoleNeedsLanguage, Args{"role": role}} }

// VersionsApart is two versions that a barrier did not bring to the same offsets.
func VersionsApart(a, b job.Ref, within time.Duration) Reason {
	return Reason{CodeVersionsApart, Args{"a": a.String(), "b": b.String(), "within": seconds(within)}}
}

// BarrierExpired is a barrier that ended before the checks began.
func BarrierExpired() Reason { return Reason{Code: CodeBarrierExpired} }

// BarrierTaken is another barrier over one of the versions, or a lock on their positions.
func BarrierTaken(err error) Reason { return Reason{CodeBarrierTaken, Args{"cause": err.Error()}} }

// NoLiveVersion is the first version of a job.
func NoLiveVersion() Reason { return Reason{Code: CodeNoLiveVersion} }

// NotHeld is a version whose engine does not stop at given offsets.
func NotHeld(version job.Number) Reason {
	return Reason{CodeNotHeld, Args{"version": version.String()}}
}

// LiveIsDown is a live version that a candidate cannot be compared with.
func LiveIsDown(live job.Number, cause Reason) Reason {
	return Reason{CodeLiveIsDown, Args{"live": live.String(), "cause": cause}}
}

// NoPrevious is a deployment before which no version was live.
func NoPrevious() Reason { return Reason{Code: CodeNoPrevious} }

// PreviousIs is a previous version that cannot be compared with: its phase, or paused.
func PreviousIs(version job.Number, state string) Reason {
	return Reason{CodePreviousIs, Args{"version": version.String(), "state": state}}
}

// PreviousUnhealthy is a previous version that no longer follows its topics.
func PreviousUnhealthy(version job.Number, cause Reason) Reason {
	return Reason{CodePreviousUnhealthy, Args{"version": version.String(), "cause": cause}}
}

// StoppedAt is a version that stopped for a cause.
func StoppedAt(at time.Time, cause Reason) Reason {
	return Reason{CodeStoppedAt, Args{"at": Time(at), "cause": cause}}
}

// IsStalled is a version that makes no progress.
func IsStalled(cause Reason) Reason { return Reason{CodeIsStalled, Args{"cause": cause}} }

// IsPaused is a version that a person paused.
func IsPaused() Reason { return Reason{Code: CodeIsPaused} }
