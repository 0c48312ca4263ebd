package job

import "strings"

// Shape says how records become rows of the version table.
type Shape string

// The shapes of a query.
const (
	Rollup Shape = "rollup" // one row a group key and lane, states merged
	Rows   Shape = "rows"   // the rows of the query, appended; their key is their place in the log
	Latest Shape = "latest" // one row a key: the latest

	// Adopted is that of a relation that was there before its job, read as it is.
	Adopted Shape = "adopted"
)

// The hidden columns of Rows and of Latest.
const (
	TopicColumn     = "_topic"
	PartitionColumn = "_partition"
	OffsetColumn    = "_offset"
	NthColumn       = "_n" // which of the record's rows

	OrderColumn   = "_order"   // the value of serve.order_by, when it is declared
	PlaceColumn   = "_place"   // record time, topic, partition and offset as a text that sorts like them; no time beside OrderColumn
	DeletedColumn = "_deleted" // the latest record was a tombstone: the view hides the row
)

// Ordered says that a declared column decides which row of a key is the latest.
func (l Layout) Ordered() bool {
	for _, s := range l.States {
		if s.Name == OrderColumn {
			return true
		}
	}
	return false
}

// Layout is the stored form of one version: what its table looks like, how two states of a key merge and how the view
// reads them. internal/query derives it; it is kept in version.layout, and serving and speedlayer work from it alone.
// Every SQL text in it is PostgreSQL. Column names in it are not quoted; SQL texts are.
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
	// Keep is how long rows are kept; nil: for ever.
	Keep *Keep `json:"keep,omitempty"`
	// Indexes are more indexes of the version table, by column.
	Indexes [][]string `json:"indexes,omitempty"`
	// Lanes is how many rows a key may have in the version table; readers see them merged. 0 means 1.
	Lanes int `json:"lanes,omitempty"`
}

// KeyColumn is one column of the group key. A rollup without GROUP BY has none: its table has at most one row a lane.
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
	// Aggregate merges many states of one key, as an aggregate over columns of relation e. Example: sum(e."views")::bigint.
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
	// Computed marks a column of serve.columns: Finish is the user's expression over the other view columns.
	Computed bool `json:"computed,omitempty"`
}

// LaneColumn is the name of the lane column of a rollup's version table: partition modulo the version's lanes.
const LaneColumn = "lane"

// StagedColumns are the columns of a row of partial states, in the order in which query.Rows yields them and
// staging stores them: lane, keys, states.
func (l Layout) StagedColumns() (names, types []string) {
	names, types = []string{LaneColumn}, []string{"smallint"}
	for _, k := range l.Keys {
		names, types = append(names, k.Name), append(types, k.Type)
	}
	for _, s := range l.States {
		names, types = append(names, s.Name), append(types, s.Type)
	}
	return names, types
}

// Audited is the layout with the hidden key of appended rows as columns of the view: rows of the same values are told apart.
func (l Layout) Audited() Layout {
	if l.Shape != Rows {
		return l
	}
	var view []ViewColumn
	for _, k := range l.Keys {
		typ, _, _ := strings.Cut(k.Type, " COLLATE")
		view = append(view, ViewColumn{Name: k.Name, Type: typ, Finish: `s."` + k.Name + `"`, Exact: true, Key: true})
	}
	l.View = append(view, l.View...)
	return l
}
