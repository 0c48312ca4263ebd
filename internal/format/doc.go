// Package format decodes record values into Arrow batches for DuckDB and decides for each record whether it is valid.
//
// A record passes through three steps, so that a rejected record leaves nothing behind:
//
//	read     one pass over the bytes by the source's format: json (the whole value must be RFC 8259 JSON in UTF-8, unknown
//	         fields too), csv (one row) or raw (one column); notes the position of each declared field
//	convert  every declared column, also those that no query reads, to its PostgreSQL type: exactly, or the record is rejected
//	append   only then, the columns that the query reads, to the batch
//
// The conversion rules are in docs/formats.md. The batch has one struct column r with the fields inside, of the Arrow
// types that DuckDB reads as the declared types. UUID and JSON use the canonical extension types arrow.uuid and
// arrow.json.
package format
