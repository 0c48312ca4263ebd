package reason

import (
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
)

// Codes of refusals to deploy, adopt or drop a job.
const (
	CodeViewOfOther       Code = "view_of_other_job"
	CodeDropUnderWay      Code = "drop_under_way"
	CodeViewKept          Code = "job_keeps_its_view"
	CodeOtherCluster      Code = "other_cluster"
	CodeViewTaken         Code = "view_name_taken"
	CodeWasRolledBack     Code = "was_rolled_back"
	CodeRollingOut        Code = "rolling_out"
	CodeReplayGap         Code = "replay_gap"
	CodeUnknownPartitions Code = "unknown_partitions"
	CodeNoStartPoint      Code = "no_start_point"
	CodeTopicCompacted    Code = "topic_compacted"
	CodeNoViewNamed       Code = "no_view_named"
	CodeAdoptedAlready    Code = "adopted_already"
	CodeJobExists         Code = "job_exists"
	CodeDependantsStay    Code = "dependants_stay"
	CodeNoViewToKeep      Code = "no_view_to_keep"
	CodeViewRead          Code = "view_is_read"
	CodeTablesRead        Code = "tables_are_read"
	CodeDropStuck         Code = "drop_stuck"
)

func stageRefusalTexts() map[Code]string {
	return map[Code]string{
		CodeViewOfOther:  `view {{text .view}} belongs to {{if .job}}job "{{text .job}}"{{else}}another job{{end}}`,
		CodeDropUnderWay: `job "{{text .job}}" is being dropped`,
		CodeViewKept: `job "{{text .job}}" serves view {{text .view}}, but the file names {{text .wanted}}: ` +
			`a job keeps its view`,
		CodeOtherCluster: `job "{{text .job}}" reads Kafka cluster {{text .cluster}}, but these brokers are cluster ` +
			`{{text .other}}: its offsets mean nothing there`,
		CodeViewTaken: `{{text .view}} is a {{text .kind}} that {{if .job}}job {{text .job}} left when it was dropped ` +
			`with --keep-view{{else}}kappactl did not make{{end}}`,
		CodeWasRolledBack: `this version of {{text .job}} was rolled back ({{text .version}}); deploying it again would ` +
			`flip readers back to it`,
		CodeRollingOut: `deployment {{text .deployment}} of {{text .version}} is rolling out; a job has one at a time`,
		CodeReplayGap:  `the replay cannot be complete: replay.start is {{text .start}} and{{lines .gaps}}`,
		CodeUnknownPartitions: `replay.start has offsets of partitions that do not exist: ` +
			`{{list .partitions}}`,
		CodeNoStartPoint: `replay.start: "{{text .start}}" is not a start point`,
		CodeTopicCompacted: `topic {{text .topic}} is compacted: a replay sees fewer records than live did, so results ` +
			`that count or list its records would change by themselves; the latest record of each key (serve.key) can ` +
			`be served`,
		CodeNoViewNamed:    `no view is named`,
		CodeAdoptedAlready: `job "{{text .job}}" has adopted {{text .view}} already`,
		CodeJobExists:      `job "{{text .job}}" exists and has versions of its own: adopt begins a job`,
		CodeDependantsStay: `what depends on {{text .view}} and cannot follow to a view: {{list .relations}}`,
		CodeNoViewToKeep:   `job "{{text .job}}" has no live version: there is no view to keep`,
		CodeViewRead:       `other relations read {{text .view}}: {{list .relations}}`,
		CodeTablesRead:     `other relations read tables of {{text .job}}: {{list .relations}}`,
		CodeDropStuck:      `{{text .version}}: {{text .cause}}`,
	}
}

// ViewOfOther is a view that another job serves; an empty owner is not known.
func ViewOfOther(view job.ViewName, owner string) Reason {
	a := Args{"view": view.String()}
	if owner != "" {
		a["job"] = owner
	}
	return Reason{CodeViewOfOther, a}
}

// DropUnderWay is a job that is being dropped.
func DropUnderWay(name job.Name) Reason { return ofJob(CodeDropUnderWay, name) }

// ViewKept is a job file that names another view than the one that the job serves.
func ViewKept(name job.Name, view, wanted job.ViewName) Reason {
	return ofJob(CodeViewKept, name).with("view", view.String()).with("wanted", wanted.String())
}

// OtherCluster is a job that reads one Kafka cluster while the brokers belong to another.
func OtherCluster(name job.Name, cluster, other string) Reason {
	return ofJob(CodeOtherCluster, name).with("cluster", cluster).with("other", other)
}

// ViewTaken is a relation in the place of a job's view. left is the dropped job that left it; empty: none did.
func ViewTaken(view job.ViewName, kind, left string) Reason {
	a := Args{"view": view.String(), "kind": kind}
	if left != "" {
		a["job"] = left
	}
	return Reason{CodeViewTaken, a}
}

// WasRolledBack is a version that readers were taken back from.
func WasRolledBack(name job.Name, version string) Reason {
	return ofJob(CodeWasRolledBack, name).with("version", version)
}

// RollingOut is a deployment that has to end first.
func RollingOut(deployment int64, ref job.Ref) Reason {
	return Reason{CodeRollingOut, Args{"deployment": fmt.Sprint(deployment), "version": ref.String()}}
}

// ReplayGap is a start point whose records are not all there.
func ReplayGap(start string, gaps []string) Reason {
	return Reason{CodeReplayGap, Args{"start": start, "gaps": gaps}}
}

// UnknownPartitions are partitions that replay.start names and the topics do not have.
func UnknownPartitions(partitions []string) Reason {
	return Reason{CodeUnknownPartitions, Args{"partitions": partitions}}
}

// NoStartPoint is a replay.start that cannot be read.
func NoStartPoint(start string) Reason { return Reason{CodeNoStartPoint, Args{"start": start}} }

// TopicCompacted is a compacted topic below a job that needs all records.
func TopicCompacted(topic string) Reason { return Reason{CodeTopicCompacted, Args{"topic": topic}} }

// NoViewNamed is a request to adopt nothing.
func NoViewNamed() Reason { return Reason{Code: CodeNoViewNamed} }

// AdoptedAlready is a relation that the job has adopted before.
func AdoptedAlready(name job.Name, view job.ViewName) Reason {
	return ofJob(CodeAdoptedAlready, name).with("view", view.String())
}

// JobExists is a job that was to begin with an adopted relation.
func JobExists(name job.Name) Reason { return ofJob(CodeJobExists, name) }

// DependantsStay are relations that depend on one that was to be adopted.
func DependantsStay(view job.ViewName, relations []string) Reason {
	return Reason{CodeDependantsStay, Args{"view": view.String(), "relations": relations}}
}

// NoViewToKeep is a job without a view that was to be dropped without its view.
func NoViewToKeep(name job.Name) Reason { return ofJob(CodeNoViewToKeep, name) }

// ViewRead is a view that others read, quoted.
func ViewRead(view string, relations []string) Reason {
	return Reason{CodeViewRead, Args{"view": view, "relations": relations}}
}

// TablesRead are tables of a job that others read.
func TablesRead(name job.Name, relations []string) Reason {
	return ofJob(CodeTablesRead, name).with("relations", relations)
}

// DropStuck is a version whose table could not be dropped in time.
func DropStuck(ref job.Ref, cause Reason) Reason {
	return Reason{CodeDropStuck, Args{"version": ref.String(), "cause": cause}}
}

func ofJob(code Code, name job.Name) Reason { return Reason{code, Args{"job": string(name)}} }
