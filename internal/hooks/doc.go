// Package hooks notifies programs and URLs of events of deployments, and asks programs before a flip.
//
// The history (kappactl.event, which reprocess writes in the transaction of each change) is the queue. A Service reads
// the events that concern a hook, writes a row of kappactl.delivery for each, and works through the deliveries that are
// due. A delivery in progress becomes due again after its timeout. Another agent then takes over the work of a killed
// agent, and repeats work whose result an agent could not record. Delivery is therefore at least once; receivers
// recognise repetitions by the event's id.
//
//	event → due ⇄ (a try fails) → done | given up
//
// Commands run once per event unless their agent dies. URLs are retried for a day with growing pauses. None of this
// delays a flip. The exception is before_promote: Before runs its commands while the promote waits, and the first that
// fails refuses it.
//
// Each hook has its own limit of concurrent deliveries, so that a slow hook delays only itself. A hook that is no
// longer in any agent's settings is forgotten after a while. If it returns, it receives events from then on.
//
// All data comes from the database and from the agents' settings. Job files cannot name a command, because otherwise
// everyone who may deploy could run programs on the agents' machines.
package hooks
