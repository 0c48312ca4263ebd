package job

import (
	"slices"
	"strings"
)

// Shape tells how records become rows of the version table.
type Shape string

// The shapes of a query.
const (
	Rollup Shape = "rollup" // one row for each group key, states merged
	Rows   Shape = "rows"   // the rows of the query, appended; their key is their place in the log
	Latest Shape = "latest" // one row a key: the latest

	// Written are rows that a program writes and replaces as it likes, by their primary key.
	Written Shape = "written"

	// Adopted is that of a relation that was there before its job, read as it is.
	Adopted Shape = "adopted"
)

// The hidden columns of Rows and of Latest.
const (
	TopicColumn     = "_topic"
	PartitionColumn = "_partition"
	OffsetColumn    = "_offset"
	NthColumn       = "_n" // which of the record's rows

	OrderColumn = "_order" // the value of serve.order_by, when it is declared
	// topic, partition and offset as a text that sorts like them, behind the record time, or before it beside
	// OrderColumn
	PlaceColumn   = "_place"
	DeletesColumn = "_deletes" // where tombstones of the key are, by partition: Layout.Hidden reads it
)

// The columns of a version of mode lambda beside those of its layout.
const (
	// EpochColumn is the last column of the table: the generation that was the newest when the row was written.
	EpochColumn = "_epoch"
	// GenerationColumn is the last column of the batch table: what it is partitioned by.
	GenerationColumn = "_generation"
)

// Ordered reports whether a declared column decides which row of a key is the latest.
func (l Layout) Ordered() bool {
	for _, s := range l.States {
		if s.Name == OrderColumn {
			return true
		}
	}
	return false
}

// Layout is the stored form of one version: the columns of its table, how two states of a key merge and how the view
// reads them. internal/query derives it, and version.layout stores it; serving and speedlayer need nothing else. Every
// SQL text in it is PostgreSQL. Column names in it are not quoted; SQL texts are.
type Layout struct {
	Shape Shape `json:"shape"`
	// Keys are the key columns in the order of the unique index: time keys first, then as in the query.
	Keys []KeyColumn `json:"keys"`
	// States are the stored columns behind the aggregates.
	States []StateColumn `json:"states"`
	// View are the columns that readers see, in the order of the query's select list, then serve.columns.
	View []ViewColumn `json:"view"`
	// Where is serve.where, or empty.
	Where string `json:"where,omitempty"`
	// Hidden is the condition over a stored row, aliased s, under which readers do not see it, or empty.
	Hidden string `json:"hidden,omitempty"`
	// Having is the condition over a stored row, aliased s, that HAVING of the query is, or empty.
	Having string `json:"having,omitempty"`
	// Top is ORDER BY and LIMIT over stored rows, aliased s, or empty.
	Top string `json:"top,omitempty"`
	// Keep defines how long rows are kept; nil: without limit.
	Keep *Keep `json:"keep,omitempty"`
	// Indexes are more indexes of the version table, by column.
	Indexes [][]string `json:"indexes,omitempty"`
	// Lambda marks a version of mode lambda: a batch table of generations beside its table, whose rows have an epoch.
	Lambda bool `json:"lambda,omitempty"`
}

// KeyColumn is one column of the group key. A rollup without GROUP BY has none: its table has at most one row.
type KeyColumn struct {
	Name string `json:"name"`
	Type string `json:"type"` // PostgreSQL type, with COLLATE "C" for text
	Time bool   `json:"time,omitempty"`
}

// StateColumn is one stored partial state.
type StateColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Combine merges a stored state with an arriving one; the stored row is aliased t, the arriving one e.
	// Example: t."views" + e."views".
	Combine string `json:"combine"`
	// Aggregate merges many states of one key, as an aggregate over columns of relation e. Example:
	// sum(e."views")::bigint.
	Aggregate string `json:"aggregate"`
}

// ViewColumn is one column of the serving view.
type ViewColumn struct {
	Name string `json:"name"`
	Type string `json:"type"` // as format_type prints it
	// Finish computes the value from the version table, whose row is aliased s. Example: s."total_ms__s".
	Finish string `json:"finish"`
	// StoredAs is for people: "sum + count".
	StoredAs string `json:"stored_as"`
	Exact    bool   `json:"exact"`
	Key      bool   `json:"key,omitempty"`
	// Counts marks an object of counts by a value's text.
	Counts bool `json:"counts,omitempty"`
	// Loose marks a column that rounds or compares an approximate value: two runs over the same records may differ in a
	// whole step. It is not compared.
	Loose bool `json:"loose,omitempty"`
	// Computed marks a column of serve.columns: Finish is the user's expression over the other view columns.
	Computed bool `json:"computed,omitempty"`
}

// KeyNames are the names of the key columns, in the order of the unique index.
func (l Layout) KeyNames() []string {
	names := make([]string, len(l.Keys))
	for i, k := range l.Keys {
		names[i] = k.Name
	}
	return names
}

// StagedColumns are the columns of a row of partial states, in the order in which query.Rows yields them and
// staging stores them: keys, then states.
func (l Layout) StagedColumns() (names, types []string) {
	for _, k := range l.Keys {
		names, types = append(names, k.Name), append(types, k.Type)
	}
	for _, s := range l.States {
		names, types = append(names, s.Name), append(types, s.Type)
	}
	return names, types
}

// ViewNames are the names of the columns that readers see.
func (l Layout) ViewNames() []string {
	names := make([]string, len(l.View))
	for i, v := range l.View {
		names[i] = v.Name
	}
	return names
}

// Audited is the layout with the key columns that readers do not see as columns of the view: rows of the same values
// are told apart.
func (l Layout) Audited() Layout {
	seen := map[string]bool{}
	for _, v := range l.View {
		seen[v.Name] = v.Key
	}
	var view []ViewColumn
	for _, k := range l.Keys {
		if !seen[k.Name] {
			typ, _, _ := strings.Cut(k.Type, " COLLATE")
			view = append(view, ViewColumn{
				Name: k.Name, Type: typ, Finish: `s."` + strings.ReplaceAll(k.Name, `"`, `""`) + `"`,
				Exact: true, Key: true,
			})
		}
	}
	l.View = append(view, l.View...)
	return l
}

// Whole is the layout with all rows that are stored and not deleted, and the query's own columns only: what a pass over
// the log gives, without HAVING, LIMIT, serve.where and serve.columns.
func (l Layout) Whole() Layout {
	l = l.Audited()
	l.Where, l.Having, l.Top, l.Keep = "", "", "", nil
	l.View = slices.DeleteFunc(slices.Clone(l.View), func(v ViewColumn) bool { return v.Computed })
	return l
}

// TakesCompacted reports whether the results are right for topics from which compaction removes older records of a key.
func (l Layout) TakesCompacted() bool { return l.Shape == Latest || l.Shape == Written }
