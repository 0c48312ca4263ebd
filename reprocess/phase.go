package reprocess

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// Event is something that moves a version to another phase.
type Event string

// The events of a version.
const (
	Frozen       Event = "frozen"        // the ranges to replay are written
	AllRead      Event = "all read"      // every segment is done and little has arrived since
	Built        Event = "built"         // filled, indexed, analyzed, sealed
	BecameReady  Event = "ready"         // the verdict is ready
	LagReturned  Event = "lag returned"  // the verdict is no longer ready
	ChecksPassed Event = "checks passed" // at one snapshot of both versions
	Flipped      Event = "flipped"       // the view reads it
	Replaced     Event = "replaced"      // the view reads another one
	RetireAsked  Event = "retire"        // by a person or at the end of the window
	Cleaned      Event = "cleaned"       // nobody works on it, tables and group are gone
	AbortAsked   Event = "abort"         // by a person
	DropAsked    Event = "drop"          // by a person, with the whole job
	CannotGoOn   Event = "cannot go on"  // going on cannot succeed
)

// Events lists every Event.
func Events() []Event {
	return []Event{Frozen, AllRead, Built, BecameReady, LagReturned, ChecksPassed, Flipped, Replaced, RetireAsked, Cleaned, AbortAsked, DropAsked, CannotGoOn}
}

type step struct {
	from job.Phase
	on   Event
}

// phaseTable is the whole life of a version.
func phaseTable() map[step]job.Phase {
	t := map[step]job.Phase{
		{job.Staged, Frozen}:          job.Replaying,
		{job.Replaying, AllRead}:      job.Building,
		{job.Building, Built}:         job.CatchingUp,
		{job.CatchingUp, BecameReady}: job.CaughtUp,
		{job.CaughtUp, LagReturned}:   job.CatchingUp,
		{job.Verified, LagReturned}:   job.CatchingUp,
		{job.CaughtUp, ChecksPassed}:  job.Verified,
		{job.Verified, Flipped}:       job.Live,
		{job.Standby, Flipped}:        job.Live,
		{job.Live, Replaced}:          job.Standby,
		{job.Standby, RetireAsked}:    job.Retiring,
		{job.Live, DropAsked}:         job.Retiring,
		{job.Standby, DropAsked}:      job.Retiring,
		{job.Retiring, Cleaned}:       job.Retired,
	}
	for _, p := range candidatePhases() {
		t[step{p, AbortAsked}] = job.Aborted
		t[step{p, DropAsked}] = job.Aborted
		t[step{p, CannotGoOn}] = job.Failed
	}
	return t
}

// candidatePhases are the phases before the flip.
func candidatePhases() []job.Phase {
	return []job.Phase{job.Staged, job.Replaying, job.Building, job.CatchingUp, job.CaughtUp, job.Verified}
}

// candidate says that a version in this phase was never live.
func candidate(p job.Phase) bool {
	for _, c := range candidatePhases() {
		if p == c {
			return true
		}
	}
	return false
}

// Next is the phase that follows an event, and false when the event means nothing in that phase.
func Next(from job.Phase, on Event) (job.Phase, bool) {
	to, ok := phaseTable()[step{from, on}]
	return to, ok
}

// stateStep is one move of a deployment.
type stateStep struct {
	from job.DeploymentState
	on   string
	to   job.DeploymentState
}

func stateTable() []stateStep {
	return []stateStep{
		{job.RollingOut, "as far as asked for, or checks failed", job.Waiting},
		{job.Waiting, "deploy again", job.RollingOut},
		{job.RollingOut, "flipped", job.Observing},
		{job.Waiting, "promote", job.Observing},
		{job.RollingOut, "flipped, nothing was live", job.Settled},
		{job.Observing, "window over, or a newer version took over", job.Settled},
		{job.Observing, "rollback, or a check that failed twice in a row", job.RolledBack},
		{job.Observing, "standby deployed again", job.Superseded},
		{job.RollingOut, "abort", job.DeployAborted},
		{job.Waiting, "abort", job.DeployAborted},
		{job.RollingOut, "cannot go on", job.DeployFailed},
		{job.Waiting, "cannot go on", job.DeployFailed},
	}
}

// Diagram is docs/phases.md: both tables as Mermaid state diagrams.
func Diagram() string {
	var b strings.Builder
	b.WriteString("# Phases\n\nGenerated from reprocess/phase.go; `make docs` writes it anew.\n\n")
	b.WriteString("## A version\n\n```mermaid\nstateDiagram-v2\n    [*] --> staged\n")
	t := phaseTable()
	for _, from := range job.Phases() {
		for _, on := range Events() {
			if to, ok := t[step{from, on}]; ok {
				fmt.Fprintf(&b, "    %s --> %s: %s\n", from, to, on)
			}
		}
		if from.Ended() {
			fmt.Fprintf(&b, "    %s --> [*]\n", from)
		}
	}
	b.WriteString("```\n\nPaused is a flag beside the phase; a live version has none. Unhealthy is a verdict beside the phase.\n\n")
	b.WriteString("## A deployment\n\n```mermaid\nstateDiagram-v2\n    [*] --> rolling_out\n")
	for _, s := range stateTable() {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", s.from, s.to, s.on)
	}
	for _, s := range job.DeploymentStates() {
		if s.Ended() {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	b.WriteString("```\n")
	return b.String()
}
