// Package agent is the long-running process. It writes a heartbeat, polls PostgreSQL for work every half second, and
// runs one goroutine for each piece of it.
//
//   - A version that replays or follows its topics gets a Runner. Every agent runs every version; the runners share its
//     partitions and segments between them.
//   - Work is a table of items, such as deployments and requests. One agent at a time works on an item, by lease. The packages
//     that own these tables describe them; a new kind of work is one more Work.
//
// Any agent may die at any moment: its leases expire and another agent continues from the rows. An agent that is told
// to stop finishes running work and releases its leases, so that others take over at once. While the database is
// unreachable it stops what it can no longer own, retries with growing pauses, and logs a repeated error only
// periodically.
package agent
