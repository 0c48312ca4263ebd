package speedlayer

import "github.com/kappactl/kappactl/internal/job"

// Merge is the statement that a live commit merges arriving rows with: one text[] parameter for each column of
// StagedColumns.
func (Store) Merge(v job.Version) string { return upsert(v) }

// Rebuild are the statements that replace the content of a version table by the merge of its staging table.
func (Store) Rebuild(v job.Version) []string {
	return fillSteps(v)
}

// StagingColumn is the column of a staging table that says which segment a row is of; the columns of StagedColumns
// follow.
const StagingColumn = segmentColumn
