// Package verify compares a version with the log: what the version serves must equal the job's query run once over the
// log.
//
//	one REPEATABLE READ snapshot              the log, read once
//	  positions, gaps, dead letters             [covers_from, next) of every partition
//	  rows, without serve.columns and where     records ──decoder──> the user's query, unsplit
//	            │                                          │
//	            └──> DuckDB table served      DuckDB table expected <──┘
//	                        └── compared key by key, NULL keys too ──> Report
//
// Both sides are converted to one text form per type (canon.go), so that differences in printing do not matter.
// Floating-point columns may differ by 1e-9 relative, because sums in another order do. Records that the decoder
// rejects are left out, and their offsets are compared with the stored dead letters. Accepted gaps are left out. If the
// log no longer holds what the version covers, the comparison is refused with exit code 7.
package verify
