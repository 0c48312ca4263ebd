package report

import (
	"encoding/json"
	"strings"

	"github.com/kappactl/kappactl/reprocess"
)

// difference is what a diff check found, as the page shows it.
type difference struct {
	Check string
	reprocess.Diff
	Parts    []part
	Examples []differing
}

// part is a number of keys of one kind.
type part struct {
	Name  string
	Keys  int64
	Share float64 // in percent of all
	Class string
}

// differing is one key with other values, or that one version lacks: A and B are its columns there, one a line; empty: it lacks the key.
type differing struct {
	Key  string
	A, B string
}

// differences are those of the checks that compare versions.
func differences(checks []reprocess.CheckStatus) []difference {
	var out []difference
	for _, c := range checks {
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
			d.Examples = append(d.Examples, differing{Key: fields(e.Key, d.Keys), A: fields(e.A, columns), B: fields(e.B, columns)})
		}
		out = append(out, d)
	}
	return out
}

// fields are the named fields of a JSON object, or the values of an array with these names, one a line; anything else stands as it is,
// and null is nothing.
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

// plain is a JSON value, a text without its quotes.
func plain(value json.RawMessage) string {
	var text string
	if err := json.Unmarshal(value, &text); err == nil && text != "" {
		return text
	}
	return string(value)
}
