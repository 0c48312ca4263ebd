// Package query compiles a job's SQL and runs it.
//
// A job's query is one DuckDB SELECT over the relation source. Compile derives from it
//
//   - PARTIAL, a DuckDB SELECT from records to (group key, state columns): it runs over any part of the log;
//   - MERGE, per state column how PostgreSQL combines two states of one key;
//   - FINISH, per output column the PostgreSQL expression from states to the value,
//
// so that PARTIAL over the parts, merged and finished, equals the query run once over the whole log. A query that
// cannot be split that way, or that is not deterministic, is refused with the place in the job file, the cause and the
// fix.
//
// How a query is checked:
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
// The checks walk the tree, never the text. The rules are closed-world: a node type or a function that is not known to
// be safe is refused.
//
// A Session is one in-memory DuckDB with one connection, locked down (settings.go). Nothing in it persists.
package query
