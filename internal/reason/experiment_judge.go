package reason

import (
	"strconv"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// Codes of what decides an experiment.
const (
	CodeABUndecided      Code = "ab_undecided"
	CodeABWaitsForResume Code = "ab_waits_for_resume"
	CodeABRuntime        Code = "ab_runtime"
	CodeABSubjects       Code = "ab_subjects"
	CodeABGuardsOnly     Code = "ab_guards_only"
	CodeABExplores       Code = "ab_explores"
	CodeABConstant       Code = "ab_constant"

	CodeABBreach         Code = "ab_breach"
	CodeABBlind          Code = "ab_blind"
	CodeABMismatch       Code = "ab_mismatch"
	CodeABCrossed        Code = "ab_crossed"
	CodeABSource         Code = "ab_source"
	CodeABStuck          Code = "ab_stuck"
	CodeABNoNumber       Code = "ab_no_number"
	CodeABPromoteRefused Code = "ab_promote_refused"

	CodeABHarm    Code = "ab_harm"
	CodeABWon     Code = "ab_won"
	CodeABBest    Code = "ab_best"
	CodeABRamped  Code = "ab_ramped"
	CodeABTimeout Code = "ab_timeout"

	CodeABRolledBack Code = "ab_rolled_back"
	CodeABWinner     Code = "ab_winner"
	CodeABPromotes   Code = "ab_promotes"

	CodeABGuardValue  Code = "ab_guard_value"
	CodeABGuardNoData Code = "ab_guard_no_data"
	CodeABGuardFailed Code = "ab_guard_failed"
)

func judgeTexts() map[Code]string {
	const run = `run {{text .run}} of the experiment of {{text .job}}`
	return map[Code]string{
		CodeABUndecided:      `the arms do not differ enough for a verdict yet`,
		CodeABWaitsForResume: `it is paused; guardrails go on`,
		CodeABRuntime:        `it runs for another {{duration .left}} at least`,
		CodeABSubjects:       `the window of {{text .subjects}} subjects of {{text .version}} is over; {{text .least}} are needed`,
		CodeABGuardsOnly:     `there are no rewards: only guardrails are looked at`,
		CodeABExplores:       `the first weights stay for another {{duration .left}}`,
		CodeABConstant:       `all rewards are the same`,

		CodeABBreach:         `guardrail {{text .name}} is breached: {{text .cause}}`,
		CodeABBlind:          `guardrail {{text .name}} cannot be judged: {{text .cause}}`,
		CodeABMismatch:       `subjects did not come to the arms as the weights say (p = {{text .p}}): something loses those of one arm`,
		CodeABCrossed:        `{{percent .share}} of the subjects have read several arms`,
		CodeABSource:         `rewards cannot be read: {{text .cause}}`,
		CodeABStuck:          `rewards have not been read up to a later time for {{duration .since}}`,
		CodeABNoNumber:       `an estimate is not a number`,
		CodeABPromoteRefused: `its promote was refused: {{text .cause}}`,

		CodeABHarm:    `the control {{text .control}} is better than every other arm`,
		CodeABWon:     `{{text .version}} is better than the control by {{text .difference}} ({{text .lo}} to {{text .hi}})`,
		CodeABBest:    `{{text .version}} is the best arm with a probability of {{percent .best}}; choosing it is expected to lose {{text .loss}}`,
		CodeABRamped:  `{{text .version}} has been through all steps of the ramp`,
		CodeABTimeout: `it has not been decided in {{duration .most}}`,

		CodeABRolledBack: run + ` is over, every reader reads {{text .control}}: {{text .cause}}`,
		CodeABWinner:     run + ` has a winner: {{text .cause}}`,
		CodeABPromotes:   run + ` asks to promote {{text .version}}: {{text .cause}}`,

		CodeABGuardValue:  `{{text .version}} is at {{text .value}}, the limit is {{text .limit}}`,
		CodeABGuardNoData: `there is no data to judge`,
		CodeABGuardFailed: `its query failed: {{text .cause}}`,
	}
}

// digits4 is a number with four digits.
func digits4(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// ABUndecided is arms that do not differ enough.
func ABUndecided() Reason { return Reason{Code: CodeABUndecided} }

// ABWaitsForResume is an experiment in which only guardrails are looked at.
func ABWaitsForResume() Reason { return Reason{Code: CodeABWaitsForResume} }

// ABRuntime is a run that is too young for a verdict.
func ABRuntime(left time.Duration) Reason { return Reason{CodeABRuntime, Args{"left": seconds(left)}} }

// ABSubjects is an arm with too few subjects whose window is over.
func ABSubjects(version string, n float64, least int) Reason {
	return Reason{CodeABSubjects, Args{"version": version, "subjects": n, "least": float64(least)}}
}

// ABGuardsOnly is a run without rewards.
func ABGuardsOnly() Reason { return Reason{Code: CodeABGuardsOnly} }

// ABExplores is a bandit whose first weights stay for a while.
func ABExplores(left time.Duration) Reason {
	return Reason{CodeABExplores, Args{"left": seconds(left)}}
}

// ABConstant is rewards from which nothing follows.
func ABConstant() Reason { return Reason{Code: CodeABConstant} }

// ABBreach is a guardrail that an arm has broken.
func ABBreach(name string, cause Reason) Reason {
	return Reason{CodeABBreach, Args{"name": name, "cause": cause}}
}

// ABBlind is a guardrail without data, or with errors, for too long.
func ABBlind(name string, cause Reason) Reason {
	return Reason{CodeABBlind, Args{"name": name, "cause": cause}}
}

// ABMismatch is subjects that came otherwise than the weights say.
func ABMismatch(p float64) Reason { return Reason{CodeABMismatch, Args{"p": digits4(p)}} }

// ABCrossed is a share of the subjects that read several arms.
func ABCrossed(share float64) Reason { return Reason{CodeABCrossed, Args{"share": share}} }

// ABSource is rewards that cannot be read.
func ABSource(cause Reason) Reason { return Reason{CodeABSource, Args{"cause": cause}} }

// ABStuck is rewards whose time does not advance.
func ABStuck(since time.Duration) Reason { return Reason{CodeABStuck, Args{"since": seconds(since)}} }

// ABNoNumber is an estimate that cannot be computed.
func ABNoNumber() Reason { return Reason{Code: CodeABNoNumber} }

// ABPromoteRefused is a promote that the run asked for in vain.
func ABPromoteRefused(cause Reason) Reason {
	return Reason{CodeABPromoteRefused, Args{"cause": cause}}
}

// ABHarm is a control that is better than the other arms.
func ABHarm(control string) Reason { return Reason{CodeABHarm, Args{"control": control}} }

// ABWon is an arm that is better than the control, with the interval of the difference.
func ABWon(version string, difference, lo, hi float64) Reason {
	return Reason{CodeABWon, Args{
		"version": version, "difference": digits4(difference), "lo": digits4(lo),
		"hi": digits4(hi),
	}}
}

// ABBest is an arm that is most probably the best.
func ABBest(version string, best, loss float64) Reason {
	return Reason{CodeABBest, Args{"version": version, "best": best, "loss": digits4(loss)}}
}

// ABRamped is an arm at the end of a ramp.
func ABRamped(version string) Reason { return Reason{CodeABRamped, Args{"version": version}} }

// ABTimeout is a run that took too long.
func ABTimeout(most time.Duration) Reason { return Reason{CodeABTimeout, Args{"most": seconds(most)}} }

// ABRolledBack is a run that ended with everybody on the control.
func ABRolledBack(name job.Name, run int, control string, cause Reason) Reason {
	return ofRun(CodeABRolledBack, name, run, Args{"control": control, "cause": cause})
}

// ABWinner is a run with an arm that could be promoted.
func ABWinner(name job.Name, run int, cause Reason) Reason {
	return ofRun(CodeABWinner, name, run, Args{"cause": cause})
}

// ABPromotes is a run that has asked for the promote of its winner.
func ABPromotes(name job.Name, run int, version string, cause Reason) Reason {
	return ofRun(CodeABPromotes, name, run, Args{"version": version, "cause": cause})
}

// ABGuardValue is an arm with a value, or a bound of it, beyond a limit.
func ABGuardValue(version string, value, limit float64) Reason {
	return Reason{CodeABGuardValue, Args{"version": version, "value": digits4(value), "limit": digits4(limit)}}
}

// ABGuardNoData is a guardrail whose query returned nothing to judge.
func ABGuardNoData() Reason { return Reason{Code: CodeABGuardNoData} }

// ABGuardFailed is a guardrail whose query failed.
func ABGuardFailed(cause Reason) Reason { return Reason{CodeABGuardFailed, Args{"cause": cause}} }
