package job

import "encoding/json"

// ViewChange is what it takes to make a serving view read another version.
type ViewChange struct {
	View   ViewName
	To     Ref
	Layout Layout
	// Contract is the view's contract so far: ordered columns with type and collation, options, owner, grants. Nil for
	// a job's first version.
	Contract json.RawMessage
	Grant    map[string][]string
}
