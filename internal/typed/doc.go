// Package typed keeps the declared columns of archived records as they are decoded, so that a replay need not decode
// them again.
//
//	archive file ──> Make: format.Decoder ──> typed file, listed in archive_typed
//	batches for PARTIAL <── Reader <── typed file, where there is one of the version's Fingerprint
//
// A typed file has one row for each record of one archive file. It is derived: it may be deleted at any time, and
// whatever is wrong with it, the archive file is read in its place. A record that the decoder rejects is in the typed
// file as it was, and is decoded again when it is read, so that dead letters are the same.
package typed
