// Package compare runs one job in three ways over the same topics and measures each: as kappa from the log, as kappa
// from the archive, and as lambda.
//
//	round ──▶ way ──▶ control schema, view schema and archive folder of its own
//	                     │  kappactl serve, a process of its own: its CPU time is exact
//	                     │  kappactl deploy, batch run, verify
//	                     ▼
//	                  Measure ──▶ Comparison ──▶ table, JSON, one HTML page
//
// Nothing is produced to the topics, and everything that a round makes is dropped at its end.
package compare
