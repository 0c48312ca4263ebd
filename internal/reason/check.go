package reason

import (
	"maps"

	"github.com/kappactl/kappactl/internal/job"
)

// Codes of runs of checks.
const (
	CodeChecksPassed   Code = "checks_passed"
	CodeChecksFailed   Code = "checks_failed"
	CodeCheckAnswer    Code = "check_answer"
	CodeCheckAfterFlip Code = "check_after_flip"
	CodeNotPromoted    Code = "not_promoted"
	CodeRecovered      Code = "check_recovered"
)

func checkTexts() map[Code]string {
	out := map[Code]string{
		CodeChecksPassed: `{{plural .checks "check" "checks"}}`,
		CodeChecksFailed: `{{list .checks}}`,
		CodeCheckAnswer: `check "{{text .check}}": {{text .outcome}}{{if .detail}}: {{text .detail}}{{end}}` +
			"{{range .examples}}\n    {{text .}}{{end}}",
		CodeCheckAfterFlip: `after the flip: {{text .answer}}`,
		CodeNotPromoted:    `{{text .version}} is not promoted:{{lines .checks}}`,
		CodeRecovered:      `the check that failed after the flip no longer fails: readers stay with {{text .version}}`,
	}
	maps.Copy(out, checkDetailTexts())
	maps.Copy(out, checkDiffTexts())
	return out
}

// ChecksPassed is how many checks passed.
func ChecksPassed(checks int) Reason { return Reason{CodeChecksPassed, Args{"checks": checks}} }

// ChecksFailed is the checks that did not pass.
func ChecksFailed(checks []Reason) Reason { return Reason{CodeChecksFailed, Args{"checks": checks}} }

// CheckAnswer is the outcome of one check, its detail, which may be zero, and examples of keys that differ.
func CheckAnswer(check, outcome string, detail Reason, examples []string) Reason {
	a := Args{"check": check, "outcome": outcome}
	if !detail.IsZero() {
		a["detail"] = detail
	}
	if len(examples) > 0 {
		a["examples"] = examples
	}
	return Reason{CodeCheckAnswer, a}
}

// CheckAfterFlip is a CheckAnswer of a check that ran after the flip.
func CheckAfterFlip(answer Reason) Reason { return Reason{CodeCheckAfterFlip, Args{"answer": answer}} }

// NotPromoted is a version that its checks keep from being promoted.
func NotPromoted(ref job.Ref, checks []Reason) Reason {
	return Reason{CodeNotPromoted, Args{"version": ref.String(), "checks": checks}}
}

// Recovered is the end of a FailedTwice for which readers could not go back.
func Recovered(version job.Number) Reason {
	return Reason{CodeRecovered, Args{"version": version.String()}}
}
