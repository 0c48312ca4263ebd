package reason

import "strconv"

// Codes of work on a version that fails and is tried again.
const (
	CodeCommitFails  Code = "commit_fails"
	CodeFetchFails   Code = "fetch_fails"
	CodeClaimFails   Code = "claim_fails"
	CodeSegmentFails Code = "segment_fails"
	CodeStartFails   Code = "start_fails"
	CodeStepFails    Code = "step_fails"
	CodeProgramFails Code = "program_fails"
	CodeNotAllowed   Code = "program_not_allowed"
	CodeIndexFails   Code = "index_fails"
)

func troubleTexts() map[Code]string {
	const retried = `: {{text .cause}}; tried again until it succeeds`
	return map[Code]string{
		CodeCommitFails:  `agent {{text .agent}} cannot commit results{{if .at}} of {{text .at}}{{end}}` + retried,
		CodeFetchFails:   `agent {{text .agent}} cannot read {{text .at}}` + retried,
		CodeClaimFails:   `agent {{text .agent}} cannot claim partitions or segments` + retried,
		CodeSegmentFails: `agent {{text .agent}} cannot replay a segment` + retried,
		CodeStartFails:   `agent {{text .agent}} cannot start to work on the version` + retried,
		CodeStepFails:    `the {{text .step}} fails` + retried,
		CodeProgramFails: `instance {{text .instance}} of the program ended with {{text .how}} on agent {{text .agent}}{{if .words}}: {{text .words}}{{end}}; ` +
			`it is started again after a pause`,
		CodeNotAllowed: `agent {{text .agent}} does not run {{text .program}}: agent.programs of its settings does not allow it`,
		CodeIndexFails: `an index of serve.indexes cannot be created: {{text .cause}}`,
	}
}

// Trouble reports whether the reason is work that fails and is tried again.
func (r Reason) Trouble() bool {
	switch r.Code {
	case CodeCommitFails, CodeFetchFails, CodeClaimFails, CodeSegmentFails, CodeStartFails, CodeStepFails,
		CodeProgramFails, CodeNotAllowed:
		return true
	default:
		return false
	}
}

// Step is a step of a controller that may fail.
type Step string

// The steps of a controller.
const (
	StepStage   Step = "staging"
	StepReplay  Step = "end of the replay"
	StepBuild   Step = "build of the table"
	StepChecks  Step = "verification"
	StepServing Step = "upkeep of the version"
	StepCleanup Step = "cleanup"
)

// CommitFails is a live commit that fails on an agent.
func CommitFails(agent, cause string) Reason { return troubleOn(CodeCommitFails, agent, cause) }

// CommitRefused is CommitFails of one partition, named topic/partition; others may go on.
func CommitRefused(agent, at, cause string) Reason { return CommitFails(agent, cause).with("at", at) }

// ProgramFails is a program that ended although nothing had asked it to, with the last lines that it wrote to its
// standard error.
func ProgramFails(agent string, instance int, how, words string) Reason {
	return Reason{CodeProgramFails, Args{"agent": agent, "instance": strconv.Itoa(instance), "how": how, "words": words}}
}

// NotAllowed is a program that the settings of an agent do not allow.
func NotAllowed(agent, program string) Reason {
	return Reason{CodeNotAllowed, Args{"agent": agent, "program": program}}
}

// FetchFails is a partition, named topic/partition, that an agent cannot read.
func FetchFails(agent, at, cause string) Reason {
	return Reason{CodeFetchFails, Args{"agent": agent, "at": at, "cause": cause}}
}

// ClaimFails is an agent that cannot claim a part of the work or keep it.
func ClaimFails(agent, cause string) Reason { return troubleOn(CodeClaimFails, agent, cause) }

// SegmentFails is a segment of a replay that fails on an agent.
func SegmentFails(agent, cause string) Reason { return troubleOn(CodeSegmentFails, agent, cause) }

// StartFails is an agent that cannot begin to work on a version.
func StartFails(agent, cause string) Reason { return troubleOn(CodeStartFails, agent, cause) }

// StepFails is a step of a version's controller that fails.
func StepFails(step Step, cause string) Reason {
	return Reason{CodeStepFails, Args{"step": string(step), "cause": cause}}
}

// IndexFails is an index of a version that cannot be created; readers do without it.
func IndexFails(cause string) Reason { return Reason{CodeIndexFails, Args{"cause": cause}} }

func troubleOn(c Code, agent, cause string) Reason {
	return Reason{c, Args{"agent": agent, "cause": cause}}
}
