package reason

import (
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
)

// Codes of faults: why a partition cannot go on.
const (
	CodeGap            Code = "gap"
	CodeTopicRecreated Code = "topic_recreated"
	CodeTopicMissing   Code = "topic_missing"
	CodeRecordTooLarge Code = "record_too_large"
	CodeArchiveFile    Code = "archive_file"
	CodeQueryError     Code = "query_error"
	CodeRecordError    Code = "record_error"
	CodeTableChanged   Code = "table_changed"
	CodeEpochsDiffer   Code = "epochs_differ"
	CodeProgramEnds    Code = "program_ends"
	CodeFault          Code = "fault" // of a kind that this release does not know

	// What ends a fault of a version that readers see or may go back to.
	CodeReturnsOrDeploy Code = "returns_or_deploy"
	CodeResumeRetries   Code = "resume_retries"
	CodeResumeOrDeploy  Code = "resume_or_deploy"
	CodeResumeSkips     Code = "resume_skips"
)

func faultTexts() map[Code]string {
	return map[Code]string{
		CodeGap:            `gap {{text .at}}: {{or .detail "the log no longer holds these offsets"}}`,
		CodeTopicRecreated: `topic recreated: {{text .at}}: {{or .detail "the topic was deleted and created again"}}`,
		CodeTopicMissing:   `topic missing: {{text .at}}: {{or .detail "the topic no longer exists"}}`,
		CodeRecordTooLarge: `record too large: {{text .at}}: {{or .detail "the record exceeds the client's limits"}}`,
		CodeArchiveFile:    `archive file: {{text .at}}: {{or .detail "a file of the archive is damaged or missing"}}`,
		CodeQueryError:     `query error: {{text .at}}: {{or .detail "the query raised an error"}}`,
		CodeRecordError:    `record error: {{text .at}}: {{or .detail "a record cannot be processed and on_error is fail"}}`,
		CodeProgramEnds:    `the program ends again and again: {{or .detail "see the agent's log"}}`,
		CodeTableChanged:   `table changed: {{text .at}}: {{or .detail "the version's table is not as kappactl created it"}}`,
		CodeEpochsDiffer:   `epochs differ: {{text .at}}: {{or .detail "the positions of the version have several epochs"}}`,
		CodeFault:          `{{text .at}}: {{or .detail .kind}}`,

		CodeReturnsOrDeploy: `resumes when the topic with that id is back; next: kappactl deploy FILE (builds a new version)`,
		CodeResumeRetries:   `next: {{text .resume}} (tries again)`,
		CodeResumeOrDeploy:  `next: {{text .resume}} (tries again), or kappactl deploy FILE (builds a new version)`,
		CodeResumeSkips: `next: {{text .resume}} (tries again), or {{text .resume}} --accept-gap {{text .gap}} ` +
			`(skips these offsets)`,
	}
}

// Fault is a partition that cannot go on, with its offsets and the cause.
func Fault(p job.Partition, f job.Fault) Reason {
	args := Args{"at": faultPlace(p, f), "detail": f.Detail}
	code := faultCode(f.Kind)
	if code == CodeFault {
		args["kind"] = string(f.Kind)
	}
	return Reason{code, args}
}

// ReturnsOrDeploy is that a fault ends when the topic is back, or with a new version.
func ReturnsOrDeploy() Reason { return Reason{Code: CodeReturnsOrDeploy} }

// ResumeRetries is that resume ends a fault if its cause is gone.
func ResumeRetries(ref job.Ref) Reason { return Reason{CodeResumeRetries, Args{"resume": resume(ref)}} }

// ResumeOrDeploy is that resume ends a fault if its cause is gone, and a new version otherwise.
func ResumeOrDeploy(ref job.Ref) Reason {
	return Reason{CodeResumeOrDeploy, Args{"resume": resume(ref)}}
}

// ResumeSkips is that resume ends a fault, by a new try or without the offsets.
func ResumeSkips(ref job.Ref, gap string) Reason {
	return Reason{CodeResumeSkips, Args{"resume": resume(ref), "gap": gap}}
}

func resume(ref job.Ref) string { return fmt.Sprintf("kappactl resume %s %s", ref.Job, ref.Number) }

func faultCode(k job.FaultKind) Code {
	switch k {
	case job.FaultGap:
		return CodeGap
	case job.FaultRecreated:
		return CodeTopicRecreated
	case job.FaultMissing:
		return CodeTopicMissing
	case job.FaultArchive:
		return CodeArchiveFile
	case job.FaultTooLarge:
		return CodeRecordTooLarge
	case job.FaultQuery:
		return CodeQueryError
	case job.FaultRecord:
		return CodeRecordError
	case job.FaultProgram:
		return CodeProgramEnds
	case job.FaultTable:
		return CodeTableChanged
	case job.FaultEpochs:
		return CodeEpochsDiffer
	case job.FaultNone:
	}
	return CodeFault
}

// faultPlace is the partition with the offsets that the fault is about.
func faultPlace(p job.Partition, f job.Fault) string {
	switch {
	case f.To > f.From:
		return p.String() + " " + job.Range{From: f.From, To: f.To}.String()
	case f.From > 0:
		return fmt.Sprintf("%s@%d", p, f.From)
	}
	return p.String()
}
