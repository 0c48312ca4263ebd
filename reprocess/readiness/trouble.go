package readiness

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// WithTrouble returns the verdict on a version on which some work fails and is retried for the reason why. If lasting
// is set, a candidate is unhealthy, so that waiting commands report it. A partition that cannot be read matters only
// once the version exceeds its limits, and is less important than brokers that do not answer at all.
func (j Judgement) WithTrouble(why reason.Reason, lasting bool) Judgement {
	fetch := why.Code == reason.CodeFetchFails
	switch {
	case why.IsZero() || j.Verdict == job.Unhealthy:
		return j
	case fetch && (j.Verdict == job.Unknown || Within(j.Verdict)):
		return j
	case lasting && !fetch:
		return Judgement{job.Unhealthy, why}
	}
	return Judgement{job.Stalled, why}
}

// failingAfter is how long a step has to fail before the failure is shown.
const failingAfter = 2 * time.Second

// Failing records the consecutive failures of a controller's step. The version's controller owns it.
type Failing struct {
	Tries  int // consecutive failures; 0: the step succeeds
	since  time.Time
	why    reason.Reason // of the last failure
	lasted time.Time     // since when work on the version fails, here or on an agent; zero: it does not
}

// Failed records a failure of the phase's step.
func (f *Failing) Failed(now time.Time, phase job.Phase, cause string) {
	if f.Tries == 0 {
		f.since = now
	}
	f.Tries++
	f.why = reason.StepFails(stepOf(phase), cause)
}

// Passed records a success of the step.
func (f *Failing) Passed() { f.Tries = 0 }

// Judge returns the verdict j, unless the version cannot proceed because the step fails here, or because work on an
// agent fails for the reason elsewhere. A candidate is unhealthy once that has lasted for patience.
func (f *Failing) Judge(now time.Time, j Judgement, elsewhere reason.Reason, candidate bool,
	patience time.Duration,
) Judgement {
	why := elsewhere
	if f.Tries > 0 && now.Sub(f.since) >= failingAfter {
		why = f.why
	}
	switch {
	case why.IsZero():
		f.lasted = time.Time{}
		return j
	case f.lasted.IsZero():
		f.lasted = now
	}
	return j.WithTrouble(why, candidate && now.Sub(f.lasted) >= patience)
}

// stepOf returns the step that a controller performs in a phase.
func stepOf(p job.Phase) reason.Step {
	switch p {
	case job.Staged:
		return reason.StepStage
	case job.Replaying:
		return reason.StepReplay
	case job.Building:
		return reason.StepBuild
	case job.CatchingUp, job.CaughtUp, job.Verified:
		return reason.StepChecks
	case job.Live, job.Standby:
		return reason.StepServing
	case job.Retiring, job.Retired, job.Aborted, job.Failed:
	}
	return reason.StepCleanup
}
