package report

import (
	"encoding/json"
	"strings"

	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/status"
)

// difference is the result of a diff check, prepared for the page.
type difference struct {
	Check string
	checks.Diff
	Parts    []part
	Examples []differing
}

// part is the number of keys of one kind.
type part struct {
	Name  string
	Keys  int64
	Share float64 // percentage of all keys
	Class string
}

// differing is one key whose values differ or that one version lacks. A and B are its columns in each version, one per
// line; empty if that version lacks the key.
type differing struct {
	Key  string
	A, B string
}

// differences returns the results of the checks that compare versions.
func differences(all []status.Check) []difference {
	var out []difference
	for _, c := range all {
		if c.Diff == nil {
			continue
		}
		d := difference{Check: c.Name, Diff: *c.Diff}
		for _, p := range []part{
			{Name: "the same", Keys: d.Same, Class: "same"},
			{Name: "changed", Keys: d.Changed, Class: "changed"},
			{Name: "only in " + d.A, Keys: d.OnlyA, Class: "lost"},
			{Name: "only in " + d.B, Keys: d.OnlyB, Class: "new"},
		} {
			p.Share = 100 * float64(p.Keys) / float64(max(1, d.All()))
			d.Parts = append(d.Parts, p)
		}
		for _, e := range c.Diff.Examples {
			columns := e.Columns
			if len(columns) == 0 {
				columns = d.Columns
			}
			d.Examples = append(d.Examples, differing{
				Key: fields(e.Key, d.Keys), A: fields(e.A, columns), B: fields(e.B, columns),
			})
		}
		out = append(out, d)
	}
	return out
}

// fields formats the named fields of a JSON object, or an array's values under these names, one per line. Other values
// are returned unchanged, null as "".
func fields(text json.RawMessage, names []string) string {
	var object map[string]json.RawMessage
	var values []json.RawMessage
	if err := json.Unmarshal(text, &values); err == nil && len(values) == len(names) {
		object = make(map[string]json.RawMessage, len(names))
		for i, name := range names {
			object[name] = values[i]
		}
		return named(object, names)
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return string(text)
	}
	return named(object, names)
}

func named(object map[string]json.RawMessage, names []string) string {
	var out []string
	for _, name := range names {
		if value, ok := object[name]; ok {
			out = append(out, name+" "+plain(value))
		}
	}
	return strings.Join(out, "\n")
}

// plain returns a JSON value as text; a string without its quotes.
func plain(value json.RawMessage) string {
	var text string
	if err := json.Unmarshal(value, &text); err == nil && text != "" {
		return text
	}
	return string(value)
}
