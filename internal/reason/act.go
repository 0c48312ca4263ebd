package reason

import "github.com/kappactl/kappactl/internal/job"

// Codes of answers to requests that did what they ask for. Those of flips are in deployment.go.
const (
	CodeVersionPaused     Code = "version_paused"
	CodeResumed           Code = "resumed"
	CodeRetried           Code = "retried"
	CodeNotPaused         Code = "not_paused"
	CodeNothingToResume   Code = "nothing_to_resume"
	CodeAborted           Code = "aborted"
	CodeAbortedBy         Code = "aborted_by"
	CodeRetired           Code = "retired"
	CodeJobDropped        Code = "job_dropped"
	CodeJobDropping       Code = "job_dropping"
	CodeRelationAdopted   Code = "relation_adopted"
	CodeRequestUnreadable Code = "request_unreadable"
)

func actTexts() map[Code]string {
	return map[Code]string{
		CodeVersionPaused: `{{text .version}} is paused`,
		CodeResumed:       `{{text .version}} is resumed{{if .gaps}} without {{list .gaps}}{{end}}`,
		CodeRetried: `{{text .version}} tries {{list .partitions}} again` +
			`{{if .more}} and {{plural .more "partition" "partitions"}} more{{end}}`,
		CodeNotPaused: `{{text .version}} is not paused and has no fault: nothing changes`,
		CodeNothingToResume: `{{text .version}} is not paused and has no fault to retry, but it is unhealthy: ` +
			`{{text .cause}}`,
		CodeAborted:   `{{text .version}} is aborted`,
		CodeAbortedBy: `{{text .version}} was aborted by {{text .by}}`,
		CodeRetired: `{{text .version}} is retired; {{if .table}}table {{text .table}} stays: it existed before the job` +
			`{{else if .dropped}}its tables {{list .dropped}} are dropped{{else}}its table is dropped{{end}}`,
		CodeJobDropped: `job {{text .job}} is dropped{{if .kept}}; ` +
			`{{range $i, $kept := .kept}}{{if $i}} and {{end}}{{text $kept}}{{end}} stays{{end}}`,
		CodeJobDropping: `the job is being dropped`,
		CodeRelationAdopted: `{{text .kind}} {{text .view}} is adopted: ` +
			`{{if .copied}}its definition is now {{text .table}}, which it reads as {{text .version}}` +
			`{{else}}it is now {{text .table}}, and a view in its place reads it as {{text .version}}{{end}}`,
		CodeRequestUnreadable: `the request's arguments cannot be read`,
	}
}

// VersionPaused is a version that a person paused.
func VersionPaused(ref job.Ref) Reason {
	return Reason{CodeVersionPaused, Args{"version": ref.String()}}
}

// Resumed is a version that continues, without the gaps that a person accepted.
func Resumed(ref job.Ref, gaps []string) Reason {
	a := Args{"version": ref.String()}
	if len(gaps) > 0 {
		a["gaps"] = gaps
	}
	return Reason{CodeResumed, a}
}

// Retried is a version whose faults are cleared: up to three of its partitions by name, and how many more.
func Retried(ref job.Ref, partitions []string) Reason {
	shown := min(len(partitions), 3)
	a := Args{"version": ref.String(), "partitions": partitions[:shown]}
	if more := len(partitions) - shown; more > 0 {
		a["more"] = more
	}
	return Reason{CodeRetried, a}
}

// NotPaused is a resume that has nothing to do.
func NotPaused(ref job.Ref) Reason { return Reason{CodeNotPaused, Args{"version": ref.String()}} }

// NothingToResume is a resume of a version that is unhealthy for a cause which a retry does not remove.
func NothingToResume(ref job.Ref, cause Reason) Reason {
	return Reason{CodeNothingToResume, Args{"version": ref.String(), "cause": cause}}
}

// Aborted is a version that was ended before its flip.
func Aborted(ref job.Ref) Reason { return Reason{CodeAborted, Args{"version": ref.String()}} }

// AbortedBy is Aborted with who asked for it.
func AbortedBy(ref job.Ref, by string) Reason {
	return Reason{CodeAbortedBy, Args{"version": ref.String(), "by": by}}
}

// Retired is a version that has ended; table is that of an adopted one, which stays, else empty. dropped are the tables
// of another one.
func Retired(ref job.Ref, table string, dropped []string) Reason {
	a := Args{"version": ref.String()}
	if len(dropped) > 1 {
		a["dropped"] = dropped
	}
	return optional(CodeRetired, a, "table", table)
}

// JobDropped is a job of which nothing is left but its history and what is kept.
func JobDropped(name job.Name, kept []string) Reason {
	a := Args{"job": string(name)}
	if len(kept) > 0 {
		a["kept"] = kept
	}
	return Reason{CodeJobDropped, a}
}

// JobDropping is a deployment of a job that is being dropped.
func JobDropping() Reason { return Reason{Code: CodeJobDropping} }

// RelationAdopted is a relation that became version 0 of a job.
func RelationAdopted(a job.Adoption) Reason {
	args := Args{
		"kind": a.Kind, "view": a.View.String(), "version": a.To.String(),
		"table": job.ViewName{Schema: a.View.Schema, Name: a.To.Table()}.String(),
	}
	if a.Copied() {
		args["kind"], args["copied"] = "view", true
	}
	return Reason{CodeRelationAdopted, args}
}

// RequestUnreadable is a request of another release.
func RequestUnreadable() Reason { return Reason{Code: CodeRequestUnreadable} }
