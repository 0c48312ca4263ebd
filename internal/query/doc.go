// Package query takes a job's SQL apart and runs it.
//
// A job's query is one DuckDB SELECT over the relation source. Compile derives from it
//
//   - PARTIAL, a DuckDB SELECT from records to (group key, state columns): it runs over any part of the log;
//   - MERGE, per state column how PostgreSQL combines two states of one key;
//   - FINISH, per output column the PostgreSQL expression from states to the value,
//
// so that PARTIAL over the parts, merged and finished, equals the query run once over the whole log. Whatever
// cannot be split that way, or is not deterministic, is refused with the place in the job file, the cause and the cure.
//
// How a query is judged:
//
//	text ──json_serialize_sql──▶ tree ──▶ shape: one aggregation over row-local steps (shape.go, rowlocal.go)
//	                              │
//	                              ├──▶ select items: a group key or one aggregate (items.go, aggregate.go)
//	                              ▼
//	            bound plan ──json_serialize_plan──▶ every function deterministic (bound.go, functions.go)
//	                              │
//	                              ▼
//	             PARTIAL tree ──json_deserialize_sql──▶ text, DESCRIBE ──▶ types (typemap.go) ──▶ job.Layout
//
// The tree is walked, never the text. The rules are closed-world: a kind of node or a function that is not known to be
// safe is refused.
//
// A Session is one DuckDB in memory with one connection, locked down (settings.go); nothing persists in it.
package query
