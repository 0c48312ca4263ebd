// Package archive keeps raw records of topics beyond their retention: Parquet files in a folder or bucket, and the
// manifest in PostgreSQL that lists them.
//
//	records ──> Writer ──> temporary file ──> Location.Put ──> Store.Publish (the manifest row and the position, one transaction)
//	records <── File  <── Location.Open  <── Store.Locate (topic id, partition, offset)
//
// A row of archive_file is the only evidence that a file belongs to the archive: it has the file's range of offsets,
// location, name and hash. The name holds the first digits of the hash, so a file is never overwritten by another one.
// The ranges of a partition are contiguous: a file covers [from, to) with holes where the log has markers, aborted or
// compacted records.
//
// Each archive has a marker file beside its files. A location without the marker is a mount that is gone, another
// machine's folder or the wrong bucket: nothing is written to it or read from it.
package archive
