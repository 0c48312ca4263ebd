package ledger

import (
	"github.com/kappactl/kappactl/internal/job"
)

// Event is something that moves a version to another phase.
type Event string

// The events of a version.
const (
	Frozen       Event = "frozen"       // the ranges to replay are written
	AllRead      Event = "all read"     // every segment is done and little has arrived since
	Built        Event = "built"        // filled, indexed, analyzed, sealed
	BecameReady  Event = "ready"        // the verdict is ready
	LagReturned  Event = "lag returned" // the verdict is no longer ready
	Outdated     Event = "another version is live"
	ChecksPassed Event = "checks passed" // at one snapshot of both versions
	Flipped      Event = "flipped"       // the view reads it
	Replaced     Event = "replaced"      // the view reads another one
	RetireAsked  Event = "retire"        // by a person or at the end of the window
	Cleaned      Event = "cleaned"       // no worker has it, its tables and group are gone
	AbortAsked   Event = "abort"         // by a person
	DropAsked    Event = "drop"          // by a person, with the whole job
	CannotGoOn   Event = "cannot go on"  // going on cannot succeed
)

// Events lists every Event.
func Events() []Event {
	return []Event{
		Frozen, AllRead, Built, BecameReady, LagReturned, Outdated, ChecksPassed, Flipped, Replaced, RetireAsked, Cleaned,
		AbortAsked, DropAsked,
		CannotGoOn,
	}
}

type phaseStep = step[job.Phase, Event]

// phaseTable is the whole life of a version.
func phaseTable() machine[job.Phase, Event] {
	t := machine[job.Phase, Event]{
		{job.Staged, Frozen}:          job.Replaying,
		{job.Replaying, AllRead}:      job.Building,
		{job.Building, Built}:         job.CatchingUp,
		{job.CatchingUp, BecameReady}: job.CaughtUp,
		{job.CaughtUp, LagReturned}:   job.CatchingUp,
		{job.Verified, LagReturned}:   job.CatchingUp,
		{job.CaughtUp, ChecksPassed}:  job.Verified,
		{job.Verified, Outdated}:      job.CaughtUp,
		{job.Verified, Flipped}:       job.Live,
		{job.Standby, Flipped}:        job.Live,
		{job.Live, Replaced}:          job.Standby,
		{job.Standby, RetireAsked}:    job.Retiring,
		{job.Live, DropAsked}:         job.Retiring,
		{job.Standby, DropAsked}:      job.Retiring,
		{job.Retiring, Cleaned}:       job.Retired,
	}
	for _, p := range candidatePhases() {
		t[phaseStep{p, AbortAsked}] = job.Aborted
		t[phaseStep{p, DropAsked}] = job.Aborted
		t[phaseStep{p, CannotGoOn}] = job.Failed
	}
	return t
}

// candidatePhases are the phases before the flip.
func candidatePhases() []job.Phase {
	return []job.Phase{job.Staged, job.Replaying, job.Building, job.CatchingUp, job.CaughtUp, job.Verified}
}

// Candidate reports whether a version in this phase was never live.
func Candidate(p job.Phase) bool {
	for _, c := range candidatePhases() {
		if p == c {
			return true
		}
	}
	return false
}

// Next is the phase that follows an event, and false when the event means nothing in that phase.
func Next(from job.Phase, on Event) (job.Phase, bool) {
	return phaseTable().next(from, on)
}

// Diagram is docs/phases.md: both tables as Mermaid state diagrams.
func Diagram() string {
	return "# Phases\n\nGenerated from reprocess/ledger; `make docs` rewrites it.\n\n## A version\n\n" +
		phaseTable().diagram(job.Staged, job.Phases(), Events(), job.Phase.Ended) +
		"\nPaused is a flag beside the phase; a live version has none. Unhealthy is a verdict beside the phase.\n\n## A deployment\n\n" +
		deploymentTable().diagram(job.RollingOut, job.DeploymentStates(), DeploymentEvents(), job.DeploymentState.Ended)
}
