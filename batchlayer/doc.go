// Package batchlayer computes the batch generations of lambda versions, shows them to readers and removes old ones.
//
//	request ─► rotate ─► read ─► fill ─► index ─► compare ─► attach ─► show
//	             │                                    │                  │
//	             │ new rows get epoch K               │ too much         │ pointer K, live K, the one
//	             │ generation K: building             ▼ changed          ▼ before it kept
//	             └────────────────────────────────► failed             remove: guard ─► detach ─► drop ─► old epochs
//
// The model. Generation K of a version holds its results up to a cut: the offset in each partition that was committed
// when the run began. The same transaction gives the version's positions epoch K, so every row of the version's table
// that is written from there on has epoch K or a later one, and holds only what lies behind the cut. Readers see the
// live generation merged with the rows of its epoch and later ones; a generation is shown by one UPDATE of a one-row
// table.
//
// A run is a request: any agent does it under a lease, and another one goes on with its cut and its done segments. Each
// step can be repeated, and a step that is done is noted in the generation. One generation of a version is built at a
// time. Before K is shown it is compared with the live generation and the epochs from there to K-1: no agent writes
// those rows any more, so no barrier is needed. What fails leaves the live generation as it is.
//
// Removal is work of its own. A generation that is no longer kept is taken out of the batch table only when no snapshot
// is older than the flip away from it, whoever holds it: a reader that first touches the table after that would miss
// its rows.
//
// The parts: generation is the record of generations and their states, archiver fills the archive that runs read.
package batchlayer
