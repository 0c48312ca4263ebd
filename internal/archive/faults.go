package archive

// The points at which the kill tests end the process, see internal/faultpoint.
const (
	Claimed      = "archive.claimed"       // the position is claimed, nothing is read
	RowGroup     = "archive.row_group"     // a row group is in the temporary file
	Closed       = "archive.closed"        // the file is complete, in the temporary folder
	Uploaded     = "archive.uploaded"      // the file is at its location, no row names it
	BeforeCommit = "archive.before_commit" // the row is written and the position moved, the transaction is open
	AfterCommit  = "archive.after_commit"

	MergeClosed       = "archive.merge_closed"        // small files are merged into one, in the temporary folder
	MergeUploaded     = "archive.merge_uploaded"      // the merged file is at its location, no row names it
	MergeBeforeCommit = "archive.merge_before_commit" // the rows are exchanged, the transaction is open
	MergeAfterCommit  = "archive.merge_after_commit"
)

// FaultPoints lists them.
func FaultPoints() []string {
	return []string{
		Claimed, RowGroup, Closed, Uploaded, BeforeCommit, AfterCommit, MergeClosed, MergeUploaded, MergeBeforeCommit,
		MergeAfterCommit,
	}
}
