package job

import (
	"encoding/json"
	"slices"
	"strings"
)

// Change is one setting that differs between two job files and changes the results.
type Change struct {
	Path string `json:"path"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Changes returns the settings that make the results of two job files differ, which are those that Hash covers, in the
// order of the file.
func Changes(from, to *Spec) []Change {
	var out []Change
	add := func(path string, a, b any) {
		if x, y := textOf(a), textOf(b); x != y {
			out = append(out, Change{Path: path, From: x, To: y})
		}
	}
	topics := func(s *Spec) []string { return slices.Sorted(slices.Values(s.Source.Topics)) }
	add("mode", from.Mode, to.Mode)
	add("engine", from.Engine.String(), to.Engine.String())
	add("source.topics", topics(from), topics(to))
	add("source.format", from.Source.Format, to.Source.Format)
	add("source.columns", from.Source.Columns, to.Source.Columns)
	add("source.on_error", onErrorWord(from), onErrorWord(to))
	add("source.on_error.tombstones", tombstoneWord(from), tombstoneWord(to))
	if normalSQL(from.Query) != normalSQL(to.Query) {
		add("query", strings.TrimSpace(from.Query), strings.TrimSpace(to.Query))
	}
	program := func(s *Spec) Program {
		if s.Program == nil {
			return Program{}
		}
		return *s.Program
	}
	add("program.command", program(from).Command, program(to).Command)
	add("program.commit", program(from).Commit, program(to).Commit)
	if normalSQL(from.Serve.Table) != normalSQL(to.Serve.Table) {
		add("serve.table", strings.TrimSpace(from.Serve.Table), strings.TrimSpace(to.Serve.Table))
	}
	add("distinct_max", from.DistinctMax, to.DistinctMax)
	add("serve.key", from.Serve.Key, to.Serve.Key)
	add("serve.order_by", from.Serve.OrderBy, to.Serve.OrderBy)
	add("replay.start", from.Replay.Start, to.Replay.Start)
	add("replay.start.offsets", from.Replay.Offsets, to.Replay.Offsets)
	add("replay.source", from.Replay.Source, to.Replay.Source)
	return out
}

func onErrorWord(s *Spec) string {
	if s.Source.OnError.Fail {
		return "fail"
	}
	return "dead_letter"
}

func tombstoneWord(s *Spec) string {
	if s.Source.OnError.SkipTombstones {
		return tombstonesSkip
	}
	return tombstonesSetAside
}

// textOf returns a setting as text; a string is unchanged, nil is empty.
func textOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	var text string
	if json.Unmarshal(b, &text) == nil {
		return text
	}
	if s := string(b); s != "null" {
		return s
	}
	return ""
}
