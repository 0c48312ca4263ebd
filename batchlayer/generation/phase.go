package generation

import (
	"fmt"
	"slices"
	"strings"
)

// State is where a generation is in its life.
type State string

// The states of a generation.
const (
	Building State = "building" // a run computes it
	Live     State = "live"     // readers see it
	Kept     State = "kept"     // readers saw it and can be shown it again
	Retired  State = "retired"  // its rows are gone, or about to be
	Failed   State = "failed"   // it was never shown
)

// States lists every State.
func States() []State { return []State{Building, Live, Kept, Retired, Failed} }

// Ended reports whether nothing follows the state.
func (s State) Ended() bool { return s == Retired }

// Event is something that moves a generation to another state.
type Event string

// The events of a generation.
const (
	Shown      Event = "shown"                // the pointer names it for the first time
	Replaced   Event = "another one is shown" // by a run or a rollback
	ShownAgain Event = "rolled back to"       // by a person
	CannotGoOn Event = "refused or cancelled" // its run ends without showing it
	Accepted   Event = "shown all the same"   // by a person, after it was refused: its run goes on
	Outdated   Event = "no longer to be kept" // newer ones are kept in its place
	Cleared    Event = "a later one is live"  // what a failed one left for inspection goes
	VersionEnd Event = "its version is retired, aborted or dropped"
)

// Events lists every Event.
func Events() []Event {
	return []Event{Shown, Replaced, ShownAgain, CannotGoOn, Accepted, Outdated, Cleared, VersionEnd}
}

type step struct {
	from State
	on   Event
}

// table is the whole life of a generation.
func table() map[step]State {
	return map[step]State{
		{Building, Shown}:      Live,
		{Building, CannotGoOn}: Failed,
		{Building, VersionEnd}: Failed,
		{Live, Replaced}:       Kept,
		{Live, VersionEnd}:     Retired,
		{Kept, ShownAgain}:     Live,
		{Kept, Outdated}:       Retired,
		{Kept, VersionEnd}:     Retired,
		{Failed, Accepted}:     Building,
		{Failed, Cleared}:      Retired,
		{Failed, VersionEnd}:   Retired,
	}
}

// Next is the state that follows an event, and false when the event has no meaning in that state.
func Next(from State, on Event) (State, bool) {
	to, ok := table()[step{from, on}]
	return to, ok
}

// steps are the states in which an event has a meaning, and at the same places those that follow.
func steps(on Event) (from, to []string) {
	for _, s := range States() {
		if next, ok := Next(s, on); ok {
			from, to = append(from, string(s)), append(to, string(next))
		}
	}
	return from, to
}

// Diagram is the life of a generation as a Mermaid state diagram.
func Diagram() string {
	var b strings.Builder
	fmt.Fprintf(&b, "```mermaid\nstateDiagram-v2\n    [*] --> %s\n", Building)
	for _, from := range States() {
		for _, on := range Events() {
			if to, ok := Next(from, on); ok {
				fmt.Fprintf(&b, "    %s --> %s: %s\n", from, to, on)
			}
		}
		if from.Ended() {
			fmt.Fprintf(&b, "    %s --> [*]\n", from)
		}
	}
	b.WriteString("```\n")
	return b.String()
}

// Shows reports whether a generation in the state can be what readers see.
func (s State) Shows() bool { return slices.Contains([]State{Live, Kept}, s) }
