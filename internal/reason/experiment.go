package reason

import "github.com/kappactl/kappactl/internal/job"

// Codes of experiments between versions.
const (
	CodeABStarted     Code = "ab_started"
	CodeABWeights     Code = "ab_weights"
	CodeABPaused      Code = "ab_paused"
	CodeABResumed     Code = "ab_resumed"
	CodeABStopped     Code = "ab_stopped"
	CodeABEndedByFlip Code = "ab_ended_by_flip"
	CodeABForgot      Code = "ab_forgot"
	CodeABTrouble     Code = "ab_trouble"

	CodeABRunning      Code = "ab_running"
	CodeABNone         Code = "ab_none"
	CodeABArm          Code = "ab_arm"
	CodeABNoArm        Code = "ab_no_arm"
	CodeABFixed        Code = "ab_fixed"
	CodeABOtherArms    Code = "ab_other_arms"
	CodeABNoCandidate  Code = "ab_no_candidate"
	CodeABWithoutLive  Code = "ab_without_live"
	CodeABWrongWeights Code = "ab_wrong_weights"
	CodeABAlready      Code = "ab_already"
	CodeABNeedsSticky  Code = "ab_needs_sticky"
)

func experimentTexts() map[Code]string {
	const run = `run {{text .run}} of the experiment of {{text .job}}`
	return map[Code]string{
		CodeABStarted: run + ` splits readers between {{list .arms}}` +
			`{{if .coverage}}; {{percent .coverage}} of the subjects are in it{{end}}`,
		CodeABWeights:     `the weights of ` + run + ` are {{list .arms}}`,
		CodeABPaused:      run + ` is paused: every reader reads {{text .control}}`,
		CodeABResumed:     run + ` goes on: {{text .accept}}`,
		CodeABStopped:     run + ` is over: every reader reads {{text .live}}`,
		CodeABEndedByFlip: run + ` is over: {{text .live}} became live`,
		CodeABForgot:      `{{plural .rows "assignment" "assignments"}} of a subject {{if eq .rows 1.0}}is{{else}}are{{end}} deleted`,

		CodeABTrouble: run + ` is paused, every reader reads {{text .control}}: {{text .cause}}`,

		CodeABRunning:      run + ` splits its readers between versions`,
		CodeABNone:         `no experiment of {{text .job}} is running`,
		CodeABArm:          `{{text .version}} is an arm of the running experiment: readers read it`,
		CodeABNoArm:        `{{text .version}} is no arm of the running experiment, which has {{list .arms}}`,
		CodeABFixed:        `the weights of ` + run + ` stay: with assign: hash a change would move subjects to other arms`,
		CodeABOtherArms:    `the arms of ` + run + ` are {{list .arms}}, and the weights are those of {{list .given}}`,
		CodeABNoCandidate:  `job {{text .job}} has {{if .found}}several versions{{else}}no version{{end}} to test against {{text .live}}{{if .found}}: {{list .found}}{{end}}`,
		CodeABWithoutLive:  `{{text .live}}, the live version, is no arm: it is the control of every experiment`,
		CodeABWrongWeights: `{{text .cause}}`,
		CodeABNeedsSticky:  `in mode {{text .mode}} weights change, and with assign: hash a change would move subjects to other arms`,
		CodeABAlready:      run + ` is {{text .state}} already`,
	}
}

func ofRun(code Code, name job.Name, run int, more Args) Reason {
	a := Args{"job": string(name), "run": run}
	for k, v := range more {
		a[k] = v
	}
	return Reason{code, a}
}

// ABStarted is an experiment that began, with its arms as "v1 90%"; coverage is the share of subjects in it.
func ABStarted(name job.Name, run int, arms []string, coverage float64) Reason {
	more := Args{"arms": arms}
	if coverage < 1 {
		more["coverage"] = coverage
	}
	return ofRun(CodeABStarted, name, run, more)
}

// ABWeights is weights that hold from now on.
func ABWeights(name job.Name, run int, arms []string) Reason {
	return ofRun(CodeABWeights, name, run, Args{"arms": arms})
}

// ABPaused is an experiment whose readers all read the control.
func ABPaused(name job.Name, run int, control string) Reason {
	return ofRun(CodeABPaused, name, run, Args{"control": control})
}

// ABResumed is an experiment that goes on; accept is why, in the words of who resumed it.
func ABResumed(name job.Name, run int, accept string) Reason {
	return ofRun(CodeABResumed, name, run, Args{"accept": accept})
}

// ABStopped is an experiment that a person ended.
func ABStopped(name job.Name, run int, live string) Reason {
	return ofRun(CodeABStopped, name, run, Args{"live": live})
}

// ABEndedByFlip is an experiment that a promote or a rollback ended.
func ABEndedByFlip(name job.Name, run int, live string) Reason {
	return ofRun(CodeABEndedByFlip, name, run, Args{"live": live})
}

// ABForgot is the rows of a subject that were deleted.
func ABForgot(rows int64) Reason { return Reason{CodeABForgot, Args{"rows": float64(rows)}} }

// ABTrouble is an experiment that was paused because of one of its arms.
func ABTrouble(name job.Name, run int, control string, cause Reason) Reason {
	return ofRun(CodeABTrouble, name, run, Args{"control": control, "cause": cause})
}

// ABRunning refuses an act that a running experiment does not allow.
func ABRunning(name job.Name, run int) Reason { return ofRun(CodeABRunning, name, run, nil) }

// ABNone is a job without a running experiment.
func ABNone(name job.Name) Reason { return Reason{CodeABNone, Args{"job": string(name)}} }

// ABArm is a version that readers read in an experiment.
func ABArm(ref job.Ref) Reason { return Reason{CodeABArm, Args{"version": ref.String()}} }

// ABNoArm is a version that is not in the running experiment.
func ABNoArm(ref job.Ref, arms []string) Reason {
	return Reason{CodeABNoArm, Args{"version": ref.String(), "arms": arms}}
}

// ABFixed is weights that do not change in a run.
func ABFixed(name job.Name, run int) Reason { return ofRun(CodeABFixed, name, run, nil) }

// ABOtherArms is weights of other versions than the arms.
func ABOtherArms(name job.Name, run int, arms, given []string) Reason {
	return ofRun(CodeABOtherArms, name, run, Args{"arms": arms, "given": given})
}

// ABNoCandidate is a job without exactly one version that could be tested against the live one.
func ABNoCandidate(name job.Name, live string, found []string) Reason {
	a := Args{"job": string(name), "live": live}
	if len(found) > 0 {
		a["found"] = found
	}
	return Reason{CodeABNoCandidate, a}
}

// ABWithoutLive is weights that leave out the live version.
func ABWithoutLive(live string) Reason { return Reason{CodeABWithoutLive, Args{"live": live}} }

// ABWrongWeights is weights that are no split.
func ABWrongWeights(cause error) Reason {
	return Reason{CodeABWrongWeights, Args{"cause": cause.Error()}}
}

// ABNeedsSticky is an experiment whose weights change, and that would not keep subjects on their arms.
func ABNeedsSticky(mode job.ABMode) Reason {
	return Reason{CodeABNeedsSticky, Args{"mode": string(mode)}}
}

// ABAlready is an experiment that is in the state asked for.
func ABAlready(name job.Name, run int, state string) Reason {
	return ofRun(CodeABAlready, name, run, Args{"state": state})
}
