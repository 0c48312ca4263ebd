// Package speedlayer does the work of one version of a SQL job: it replays history and follows its topics live, exactly
// once.
//
//	            segments (bounded)                      positions (unbounded)
//	claim ─► fetch ─► decode ─► PARTIAL ─► staging       claim ─► fetch ─► decode ─► PARTIAL ─► version table
//	  ▲                            │  one transaction:     ▲                            │  one transaction:
//	  └──────── next segment ◄─────┘  rows, state=done     └──── next batch ◄───────────┘  positions, rows
//
// The model. A version reads each partition from covers_from on. What lies below frozen_end is cut into segments, which
// workers of any agent take in any order; a segment is read by position, run through one statement and stored with its
// state in one transaction, so a crash repeats a whole segment and never half of one. When all are done the staged
// states are merged into the version table and the positions are set to frozen_end (Fill, Seal). From there on each
// commit moves the positions and merges the rows in the same transaction.
//
// Who may write. Segments and positions are owned by lease. Every claim raises the row's claim number and every write
// repeats it, so a worker that was paused while its lease ran out changes nothing. The commit locks the position rows
// in (topic id, partition) order, checks claim, next and hold on the locked rows, and rolls back when one differs. A
// COMMIT whose outcome is unknown is decided by claiming again, which waits for that transaction, never by a plain
// read.
//
// What goes wrong. A broker or database that is away is waited for. A gap in the log, a topic that was recreated, a
// record that the query cannot take are faults: written beside the position or segment, under the claim, for the
// controller to judge; the other partitions go on.
//
// Store is the SQL over position, segment, dead_letter and staging; Engine is the work.
package speedlayer
