// Package verify is the oracle: what a version serves must equal the job's query run once over the log.
//
//	one REPEATABLE READ snapshot              the log, read once
//	  positions, gaps, dead letters             [covers_from, next) of every partition
//	  rows, without serve.columns and where     records ──decoder──> the user's query, unsplit
//	            │                                          │
//	            └──> DuckDB table served      DuckDB table expected <──┘
//	                        └── compared key by key, NULL keys too ──> Report
//
// Both sides are brought to one text form per type (canon.go), so that neither engine's printing decides. Floating-point
// columns may differ by 1e-9 relative, because sums in another order do. Records that the decoder rejects are left out and
// their offsets compared with the dead letters that were stored; accepted gaps are left out. A log that no longer holds
// what the version covers is a refusal with exit code 7.
package verify
