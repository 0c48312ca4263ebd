package reason

import "time"

// Codes of the schedule of batch runs.
const (
	CodeSchedulePaused  Code = "schedule_paused"
	CodeScheduleResumed Code = "schedule_resumed"
	CodeScheduleMissed  Code = "schedule_missed"
	CodeScheduleFailed  Code = "schedule_failed"
	CodeBatchLate       Code = "batch_late"
)

func scheduleTexts() map[Code]string {
	return map[Code]string{
		CodeSchedulePaused:  `the schedule is paused: no batch run begins by itself`,
		CodeScheduleResumed: `the schedule goes on; the next batch run is due at {{text .next_run}}`,
		CodeScheduleMissed:  `{{plural .missed "batch run was" "batch runs were"}} missed, due from {{text .first}} on`,
		CodeScheduleFailed:  `the batch run of {{text .tick}} failed{{if .cause}}: {{text .cause}}{{end}}`,
		CodeBatchLate: `two batch runs were due and readers see the results of neither{{if .cut}}: ` +
			`what they see was cut at {{text .cut}}{{end}}`,
	}
}

// SchedulePaused is a schedule by which no run begins.
func SchedulePaused() Reason { return Reason{Code: CodeSchedulePaused} }

// ScheduleResumed is a schedule that counts from now on.
func ScheduleResumed(next time.Time) Reason {
	return Reason{CodeScheduleResumed, Args{"next_run": Time(next)}}
}

// ScheduleMissed is runs that no agent began in time.
func ScheduleMissed(missed int, first time.Time) Reason {
	return Reason{CodeScheduleMissed, Args{"missed": missed, "first": Time(first)}}
}

// ScheduleFailed is a run of the schedule that ended without a generation.
func ScheduleFailed(tick time.Time, cause Reason) Reason {
	args := Args{"tick": Time(tick)}
	if !cause.IsZero() {
		args["cause"] = cause
	}
	return Reason{CodeScheduleFailed, args}
}

// BatchLate is a live generation that is older than two intervals of the schedule, or a version without one; cut is nil
// then.
func BatchLate(cut *time.Time) Reason {
	args := Args{}
	if cut != nil {
		args["cut"] = Time(*cut)
	}
	return Reason{CodeBatchLate, args}
}
