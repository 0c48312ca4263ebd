package ledger

import (
	"slices"

	"github.com/kappactl/kappactl/internal/job"
)

// DeploymentEvent is something that moves a deployment to another state.
type DeploymentEvent string

// The events of a deployment.
const (
	Stopped       DeploymentEvent = "as far as requested, or refused"
	Redeployed    DeploymentEvent = "deployed again"
	Promoted      DeploymentEvent = "promoted"
	PromotedFirst DeploymentEvent = "promoted, nothing was live"
	AppliedWithin DeploymentEvent = "applied in place within a rollback window"
	Applied       DeploymentEvent = "applied in place"
	WindowEnded   DeploymentEvent = "rollback window over, or another version is live"
	WentBack      DeploymentEvent = "rolled back, by a person or by a check"
	Displaced     DeploymentEvent = "standby promoted, or applied in place"
	Retired       DeploymentEvent = "version retired"
	JobDropped    DeploymentEvent = "job dropped"
	Aborted       DeploymentEvent = "aborted"
	Failed        DeploymentEvent = "cannot continue"
)

// DeploymentEvents lists every DeploymentEvent.
func DeploymentEvents() []DeploymentEvent {
	return []DeploymentEvent{
		Stopped, Redeployed, Promoted, PromotedFirst, AppliedWithin, Applied, WindowEnded, WentBack, Displaced, Retired,
		JobDropped, Aborted, Failed,
	}
}

type deploymentStep = step[job.DeploymentState, DeploymentEvent]

// deploymentTable is the whole life of a deployment.
func deploymentTable() machine[job.DeploymentState, DeploymentEvent] {
	t := machine[job.DeploymentState, DeploymentEvent]{
		{job.Waiting, Redeployed}:    job.RollingOut,
		{job.Observing, WindowEnded}: job.Settled,
		{job.Observing, WentBack}:    job.RolledBack,
		{job.Settled, WentBack}:      job.RolledBack,
		{job.Observing, Displaced}:   job.Superseded,
		{job.Observing, JobDropped}:  job.Superseded,
	}
	for _, open := range []job.DeploymentState{job.RollingOut, job.Waiting} {
		t[deploymentStep{open, Stopped}] = job.Waiting
		t[deploymentStep{open, Promoted}] = job.Observing
		t[deploymentStep{open, PromotedFirst}] = job.Settled
		t[deploymentStep{open, AppliedWithin}] = job.Observing
		t[deploymentStep{open, Applied}] = job.Settled
		t[deploymentStep{open, Retired}] = job.Superseded
		t[deploymentStep{open, JobDropped}] = job.DeployAborted
		t[deploymentStep{open, Aborted}] = job.DeployAborted
		t[deploymentStep{open, Failed}] = job.DeployFailed
	}
	return t
}

// NextState is the state that follows an event, and false when the event has no meaning in that state.
func NextState(from job.DeploymentState, on DeploymentEvent) (job.DeploymentState, bool) {
	return deploymentTable().next(from, on)
}

// steps are the states in which an event has a meaning, and at the same places those that follow.
func steps(on DeploymentEvent) (from, to []string) {
	for _, s := range job.DeploymentStates() {
		if next, ok := NextState(s, on); ok {
			from, to = append(from, string(s)), append(to, string(next))
		}
	}
	return from, to
}

// ending are those of the states that end a deployment.
func ending() []string {
	var out []string
	for _, s := range job.DeploymentStates() {
		if s.Ended() {
			out = append(out, string(s))
		}
	}
	return slices.Clip(out)
}
