// Package format turns record values into Arrow batches for the SQL engine, with a verdict on each record.
//
// A record passes through three steps, so that a refused record leaves nothing behind:
//
//	read     one pass over the bytes by the source's format: json (the whole value must be RFC 8259 JSON in UTF-8, unknown
//	         fields too), csv (one row) or raw (one column); notes where each declared field stands
//	convert  every declared column, also those that no query reads, to its PostgreSQL type: exactly, or the record is refused
//	append   only then, the columns that the query reads, to the batch
//
// The conversion rules are in docs/formats.md. The batch has one struct column r with the fields inside, of the Arrow types
// that the engine reads as the declared types: UUID and JSON travel as the canonical extension types arrow.uuid and
// arrow.json.
package format
