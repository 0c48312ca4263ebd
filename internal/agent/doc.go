// Package agent is the long-running process: it says that it is alive, finds work in PostgreSQL by one query every half
// second, and keeps one goroutine for each piece of it.
//
//   - A version that replays or follows its topics gets a Runner. Every agent runs every version; how they share its
//     partitions and segments is the runner's business.
//   - The newest deployment of a version that has not ended gets a Controller, in one agent at a time, by lease.
//   - A request that nobody has answered is done by one agent at a time, by lease.
//
// Any agent may die at any moment: its leases run out and another goes on from the rows. An agent that is told to stop
// finishes what is in hand and gives its leases up, so that others take over at once. When the database is away it
// stops what it can no longer own, tries again ever more slowly, and says so in few words.
package agent
