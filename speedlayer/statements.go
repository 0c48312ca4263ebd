package speedlayer

import "github.com/kappactl/kappactl/internal/job"

// Merge is the statement that a live commit merges arriving rows with: one text[] parameter for each column of
// StagedColumns.
func (Store) Merge(ref job.Ref, schema string, l job.Layout) string { return upsert(ref, schema, l) }

// Rebuild are the statements that replace the content of a version table by the merge of its staging table.
func (Store) Rebuild(ref job.Ref, schema string, l job.Layout) []string {
	return fillSteps(ref, schema, l)
}

// StagingColumn is the column of a staging table that says which segment a row is of; the columns of StagedColumns follow.
const StagingColumn = segmentColumn
