package job

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// identity is what changes a version's results, in the order in which it is hashed. A field may be added only with
// omitempty and a zero value that means what files without it meant, or every job would replay at the next deploy.
type identity struct {
	Mode    Mode             `json:"mode"`
	Topics  []string         `json:"topics"`
	Format  string           `json:"format"`
	Columns []Column         `json:"columns"`
	OnError string           `json:"on_error"`
	Query   string           `json:"query"`
	Values  int              `json:"distinct_max,omitempty"`
	Key     []string         `json:"key,omitempty"`
	OrderBy string           `json:"order_by,omitempty"`
	Start   string           `json:"start"`
	Offsets map[string]int64 `json:"offsets,omitempty"`
	Dialect int              `json:"dialect"`
}

// Hash says whether two stagings give the same results: 12 hex digits of SHA-256 over what changes the output, in
// canonical JSON. Comments and white space of the query do not count, nor does what is applied in place (serve.columns, checks, keep, …).
func (s *Spec) Hash(dialect int) string {
	id := identity{
		Mode: s.Mode, Topics: slices.Sorted(slices.Values(s.Source.Topics)), Format: s.Source.Format,
		Columns: s.Source.Columns, OnError: "dead_letter", Query: normalSQL(s.Query), Values: s.DistinctMax, Key: s.Serve.Key,
		OrderBy: s.Serve.OrderBy, Start: s.Replay.Start, Offsets: s.Replay.Offsets, Dialect: dialect,
	}
	if s.Source.OnError.Fail {
		id.OnError = "fail"
	}
	text, err := json.Marshal(id)
	if err != nil {
		// Strings, integers and maps of them always marshal.
		panic("job: hash: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}
