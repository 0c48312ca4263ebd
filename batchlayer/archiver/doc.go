// Package archiver writes the archive: it reads the topics that jobs want archived, up to the last stable offset, and
// publishes their records as files.
//
//	Look      jobs ──> archives and partitions (rows); samples of the logs, for lag and alarms
//	Work      agent ──> Run, a goroutine for each partition held by lease ─┐ orders: row group, publish, fault
//	Host      one goroutine ── fetches all held partitions, fills writers ─┘
//
// A partition belongs to the goroutine of Host while it is read and to its Run while an order is carried out; it is not
// fetched meanwhile, so memory is bounded. What was read and not published is read again after a crash: the position in
// the database moves with the manifest row and in no other way.
package archiver
