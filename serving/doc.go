// Package serving owns what readers see: the table of each version and the one view in front of them.
//
//	readers ──> view ──(CREATE OR REPLACE VIEW, written from the contract)──> job__v1   job__v2   …
//
// A version table holds keys and states as internal/query laid them out. It is made without an index, filled by
// speedlayer, then indexed and analyzed; it is never dropped together with anything that reads it.
//
// The contract holds the promises to readers: the view's columns in order with type and collation, its options, owner,
// grants and comment. It lives in kappactl.job.contract, which reprocess writes. A switch takes the view as it is in
// the catalogue (so what people changed by hand stays) and makes one CREATE OR REPLACE VIEW of it. Columns are found by
// name; one that a version lacks is served as NULL of its type, so that going back is always possible. A column is
// never removed and never changes its type, because PostgreSQL refuses both for a view that is in use.
//
// Every step can be repeated: it reads the present state first. An object that is in the way and is not ours is a
// *job.Refusal.
package serving
