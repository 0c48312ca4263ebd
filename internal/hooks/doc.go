// Package hooks tells programs and web addresses of what happens to deployments, and asks programs before a flip.
//
// The history (kappactl.event, written by reprocess in the transaction of what happened) is the queue: a Service looks for events that
// a hook is to be told of, makes a row of kappactl.delivery for each, and works through those that are due. A row that is being worked
// on is due again when its time is over, so that what a killed agent was doing is done by another one, and what an agent did and could
// not write down is done twice: at least once, with the id of the event to recognise it by.
//
//	event → due ⇄ (a try fails) → done | given up
//
// Commands run once an event unless their agent died; addresses are tried again with growing pauses for a day. Nothing of this is in
// the way of a flip. The exception is before_promote: Before runs its commands while the promote waits, and the first that fails
// refuses it.
//
// Every hook has its own few deliveries in hand, so that a slow one keeps only itself waiting. A hook that is in the settings of no agent
// any more is forgotten after a while, and starts anew when it comes back.
//
// What is told comes from the database and from agents' settings alone. Job files cannot name a command: whoever may deploy would
// otherwise run programs on the agents' machines.
package hooks
