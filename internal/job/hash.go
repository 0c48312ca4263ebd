package job

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// identity holds everything that changes a version's results, in the order in which it is hashed. A new field needs
// omitempty, and its zero value must mean what files without it meant; otherwise every job would replay at the next
// deploy.
type identity struct {
	Mode    Mode             `json:"mode"`
	Topics  []string         `json:"topics"`
	Format  string           `json:"format"`
	Columns []Column         `json:"columns"`
	OnError string           `json:"on_error"`
	Skip    bool             `json:"skip_tombstones,omitempty"`
	Query   string           `json:"query"`
	Values  int              `json:"distinct_max,omitempty"`
	Key     []string         `json:"key,omitempty"`
	OrderBy string           `json:"order_by,omitempty"`
	Start   string           `json:"start"`
	Offsets map[string]int64 `json:"offsets,omitempty"`
	From    ReplaySource     `json:"replay_source,omitempty"`
	Dialect int              `json:"dialect"`
	Engine  Engine           `json:"engine,omitempty"`
	Command []string         `json:"command,omitempty"`
	Commit  CommitMode       `json:"commit,omitempty"`
	Table   string           `json:"table,omitempty"`
}

// Hash identifies the results of a staging: 12 hex digits of SHA-256 over everything that changes the output, in
// canonical JSON. Comments and white space of the query do not count, nor do settings that are applied in place
// (serve.columns, checks, keep, …).
func (s *Spec) Hash(dialect int) string {
	id := identity{
		Mode: s.Mode, Topics: slices.Sorted(slices.Values(s.Source.Topics)), Format: s.Source.Format,
		Columns: s.Source.Columns, OnError: "dead_letter", Skip: s.Source.OnError.SkipTombstones, Query: normalSQL(s.Query),
		Values: s.DistinctMax, Key: s.Serve.Key,
		OrderBy: s.Serve.OrderBy, Start: s.Replay.Start, Offsets: s.Replay.Offsets, From: s.Replay.Source, Dialect: dialect,
		Engine: s.Engine, Table: normalSQL(s.Serve.Table),
	}
	if s.Program != nil {
		id.Command, id.Commit = s.Program.Command, s.Program.Commit
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
