// Package trial runs the tests that stand in a job file: given records, the rows that come out are compared with those
// expected.
//
// Records go through the decoder of the job's format and the query runs in the engine that agents use, without broker or
// database (DuckDB). With a database each record is a part of its own, merged and finished by PostgreSQL in temporary
// tables, and the rows are those that the view would show: with serve.columns and serve.where.
//
// Given records have offsets in their order, from 0, and what is not said is not there: no timestamp, no key, no headers.
// They are of partition 0 of the first topic unless they say otherwise. Values are compared as values of their column's type: "2026-01-01T10:00:00Z" is any spelling of that moment. Columns
// that an expected row does not name are not compared.
package trial
