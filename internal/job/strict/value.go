package strict

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Value defines what is allowed at one place.
type Value struct {
	// Type names the type for people: "text", "duration".
	Type string
	// Keys are the keys of a mapping, or of the mappings in a list.
	Keys []Key
	// List marks a list whose items Keys describes.
	List bool
	// Schema is the equivalent JSON Schema for editors.
	Schema Schema
	// Read stores the node's value in its target, or refuses it.
	Read func(d *Document, n *yaml.Node, path string)
}

// Key is one key of a mapping.
type Key struct {
	Name     string
	Required bool
	Value    Value
}

// read records the place of n and reads it. It refuses YAML beyond plain data.
func (d *Document) read(v Value, n *yaml.Node, path string) {
	d.nodes[path] = n
	if d.Plain(n, path) {
		v.Read(d, n, path)
	}
}

// Plain reports whether n is plain data with a value, and records a fault otherwise.
func (d *Document) Plain(n *yaml.Node, path string) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		d.Refuse(n, path, "an alias (*"+n.Value+") is not allowed",
			"write the value itself; anchors and aliases are not supported")
	case n.Anchor != "":
		d.Refuse(n, path, "an anchor (&"+n.Anchor+") is not allowed", "remove it; anchors and aliases are not supported")
	case n.Style&yaml.TaggedStyle != 0:
		d.Refuse(n, path, "a tag ("+n.Tag+") is not allowed", "remove it; put a text in quotes instead")
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		d.Refuse(n, path, "there is no value", "write one, or remove the key if it is optional")
	default:
		return true
	}
	return false
}

// kindOf names the kind of n for messages.
func kindOf(n *yaml.Node) string {
	if n.Kind == yaml.MappingNode {
		return "a mapping"
	}
	if n.Kind == yaml.SequenceNode {
		return "a list"
	}
	switch n.Tag {
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!bool":
		return n.Value
	case "!!timestamp":
		return "the time " + n.Value
	}
	return strconv.Quote(clip(n.Value))
}

func clip(s string) string {
	const most = 60
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// Mapping accepts a mapping with these keys and no others.
func Mapping(keys ...Key) Value {
	return Value{
		Type: "mapping", Keys: keys, Schema: mappingSchema(keys),
		Read: func(d *Document, n *yaml.Node, path string) {
			if n.Kind != yaml.MappingNode {
				d.Refuse(n, path, "want a mapping, not "+kindOf(n), "write its keys below it: "+names(keys))
				return
			}
			seen := map[string]bool{}
			for i := 0; i+1 < len(n.Content); i += 2 {
				seen[n.Content[i].Value] = true
			}
			d.Entries(n, path, func(name, at string, key, value *yaml.Node) {
				i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name })
				if i < 0 {
					seen[Nearest(name, keyNames(keys))] = true // a misspelt key is not reported as missing too
					d.Refuse(key, at, fmt.Sprintf("unknown key %q", clip(name)), d.cure(name, path, keyNames(keys)))
					return
				}
				d.read(keys[i].Value, value, at)
			})
			for _, k := range keys {
				if k.Required && !seen[k.Name] {
					d.Refuse(n, Join(path, k.Name), "missing", "add "+k.Name+": a "+k.Value.Type)
				}
			}
		},
	}
}

// Entries visits the pairs of a mapping. It refuses keys that are not plain scalars or are repeated.
func (d *Document) Entries(n *yaml.Node, path string, visit func(name, at string, key, value *yaml.Node)) {
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := Join(path, key.Value)
		switch line, twice := first[key.Value]; {
		case key.Kind == yaml.AliasNode || key.Anchor != "" || key.Tag == "!!merge" || key.Style&yaml.TaggedStyle != 0:
			d.Refuse(key, path, "the key is an anchor, an alias, a merge (<<) or has a tag", "write plain keys")
			continue
		case key.Kind != yaml.ScalarNode:
			d.Refuse(key, path, "the key is "+kindOf(key), "write plain keys")
			continue
		case twice:
			d.Refuse(key, at, fmt.Sprintf("%q occurs twice; the first is on line %d", clip(key.Value), line),
				"keep one of the two")
			continue
		}
		first[key.Value] = key.Line
		if text, pairs := parted(n.Content[i+1:]); pairs > 0 {
			d.Refuse(value, at, fmt.Sprintf("the comma in %s ends the value: inside braces YAML splits entries at commas", text),
				`put the value in quotes: "`+text+`", or write each entry on a line of its own, without braces`)
			i += 2 * pairs
			continue
		}
		visit(key.Value, at, key, value)
	}
}

// parted rejoins a value that a comma in parentheses has split into entries of a flow mapping, as in {a:
// numeric(10,2)}. rest begins with the value. pairs is the number of following entries that belong to it, 0 if it is
// complete.
func parted(rest []*yaml.Node) (text string, pairs int) {
	text = rest[0].Value
	open := func() bool { return strings.Count(text, "(") > strings.Count(text, ")") }
	if rest[0].Kind != yaml.ScalarNode || rest[0].Style != 0 || !open() {
		return text, 0
	}
	for open() {
		next := rest[1+2*pairs:]
		if len(next) < 2 || next[0].Kind != yaml.ScalarNode || next[1].Tag != "!!null" || next[1].Value != "" {
			return text, 0
		}
		text += "," + next[0].Value
		pairs++
	}
	return text, pairs
}

// Join appends a key to a path.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Each accepts a list and reads every item with its own Value.
func Each(item func() Value) Value {
	sample := item()
	schema := Schema{"type": "array", "items": sample.Schema}
	return Value{
		Type: "list (" + sample.Type + ")", Keys: sample.Keys, List: true, Schema: schema,
		Read: func(d *Document, n *yaml.Node, path string) {
			if n.Kind != yaml.SequenceNode {
				d.Refuse(n, path, "want a list, not "+kindOf(n), "write [ ] around it, or each item on its own line after a dash")
				return
			}
			for i, c := range n.Content {
				d.read(item(), c, fmt.Sprintf("%s[%d]", path, i))
			}
		},
	}
}

// Named accepts a mapping with arbitrary keys; value returns the reader of one entry. The caller sets Keys and the
// schema of an entry.
func Named(kind string, value func(d *Document, name, path string, key *yaml.Node) (Value, bool)) Value {
	return Value{
		Type: kind, Schema: Schema{"type": "object", "title": kind},
		Read: func(d *Document, n *yaml.Node, path string) {
			if n.Kind != yaml.MappingNode {
				d.Refuse(n, path, "want a mapping, not "+kindOf(n), "write one entry per line below it, as NAME: VALUE")
				return
			}
			d.Entries(n, path, func(name, at string, key, node *yaml.Node) {
				if v, ok := value(d, name, at, key); ok {
					d.read(v, node, at)
				}
			})
		},
	}
}

func keyNames(keys []Key) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.Name
	}
	return out
}

func names(keys []Key) string { return strings.Join(keyNames(keys), ", ") }
