// Package mergecheck checks on sampled records that a job can be computed in parts. For any split and order of the
// records this must hold:
//
//	FINISH(MERGE(PARTIAL(part 1), PARTIAL(part 2), …)) = the query run once over all of them.
//
// PARTIAL runs in the engine that agents use; MERGE and FINISH run in PostgreSQL, with the very statements that agents
// and views use, in temporary tables of a transaction that is rolled back:
//
//	records ─▶ random parts ─▶ PARTIAL ─┬─▶ live:   one upsert a part, in random order ─▶ FINISH ─┐
//	                                    └─▶ replay: all staged, merged at once ─────────▶ FINISH ─┤ equal, row by row
//	records ─▶ the query, once ────────────────────────────────────────────────────────────────────┘
//
// Every random choice comes from one seed, which the report names, so that a failure can be run again.
//
// The same tables run a job's own tests through PostgreSQL (package trial).
package mergecheck
