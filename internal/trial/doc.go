// Package trial runs the tests of a job file: it compares the rows that the given records produce with the expected
// rows.
//
// Records go through the decoder of the job's format, and the query runs in DuckDB, the engine that agents use; this
// needs no broker and no database. With a database each record is also a part of its own, which PostgreSQL merges and
// finishes in temporary tables. The rows are then those that the view would show, with serve.columns and serve.where.
//
// Given records have offsets in their order, from 0. Fields that a test does not state are absent: timestamp, key,
// headers. Records belong to partition 0 of the first topic unless the test states another. Values are compared as
// values of the column's type: "2026-01-01T10:00:00Z" matches every spelling of that instant. Columns that an expected
// row does not name are not compared.
package trial
