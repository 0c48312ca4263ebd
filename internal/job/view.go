package job

import "encoding/json"

// ViewChange describes how a serving view is changed to read another version.
type ViewChange struct {
	View   ViewName
	To     Ref
	Layout Layout
	// Contract is the view's contract so far: ordered columns with type and collation, options, owner, grants. Nil for
	// a job's first version.
	Contract json.RawMessage
	Grant    map[string][]string
}

// Version is the version that the view is made to read.
func (c ViewChange) Version() Version {
	return Version{Ref: c.To, Schema: c.View.Schema, Layout: c.Layout}
}
