package ledger

import (
	"fmt"
	"strings"
)

// step is an event in a state.
type step[S, E comparable] struct {
	from S
	on   E
}

// machine is the whole life of a version or of a deployment: the state that follows each event that has a meaning in a
// state.
type machine[S, E comparable] map[step[S, E]]S

// next is the state that follows an event, and false when the event has no meaning in that state.
func (m machine[S, E]) next(from S, on E) (S, bool) {
	to, ok := m[step[S, E]{from, on}]
	return to, ok
}

// diagram is the machine as a Mermaid state diagram that begins in first.
func (m machine[S, E]) diagram(first S, states []S, events []E, ended func(S) bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "```mermaid\nstateDiagram-v2\n    [*] --> %v\n", first)
	for _, from := range states {
		for _, on := range events {
			if to, ok := m.next(from, on); ok {
				fmt.Fprintf(&b, "    %v --> %v: %v\n", from, to, on)
			}
		}
		if ended(from) {
			fmt.Fprintf(&b, "    %v --> [*]\n", from)
		}
	}
	b.WriteString("```\n")
	return b.String()
}
