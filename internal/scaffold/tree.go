package scaffold

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/kappactl/kappactl/internal/job"
)

const (
	// maxDepth is how many steps a column's path has at most. Values below it belong to a jsonb column.
	maxDepth = 6
	// maxDistinct is how many different values of a field are kept.
	maxDistinct = 1000
	// An object with more than mapChildren names, of which each record has few, is a map: its names are data.
	mapChildren = 30
	mapShare    = 0.3
)

// node is one place inside the record values: what the sampled records have there.
type node struct {
	name     string
	path     []job.Step
	children []*node // in the order in which their names were seen first
	index    map[string]*node

	objects, arrays, texts, numbers, booleans, nulls int

	distinct map[string]struct{} // the JSON text of scalar values, up to maxDistinct
	values   []string            // the same in the order in which they were seen first
}

func newNode(name string, path []job.Step) *node {
	return &node{name: name, path: path, index: map[string]*node{}, distinct: map[string]struct{}{}}
}

// child returns the member name of the object, which it adds if it is new.
func (n *node) child(name string) *node {
	if c := n.index[name]; c != nil {
		return c
	}
	path := append(append([]job.Step{}, n.path...), job.Step{Name: name, Index: -1})
	c := newNode(name, path)
	n.index[name] = c
	n.children = append(n.children, c)
	return c
}

// add counts one value at this place and below it.
func (n *node) add(raw json.RawMessage) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return errors.New("no value")
	}
	switch raw[0] {
	case '{':
		n.objects++
		if len(n.path) >= maxDepth {
			return nil
		}
		return members(raw, func(name string, value json.RawMessage) error { return n.child(name).add(value) })
	case '[':
		n.arrays++
		return nil
	case 'n':
		n.nulls++
		return nil
	case '"':
		n.texts++
	case 't', 'f':
		n.booleans++
	default:
		n.numbers++
	}
	text := string(raw)
	if _, known := n.distinct[text]; !known && len(n.values) < maxDistinct {
		n.distinct[text] = struct{}{}
		n.values = append(n.values, text)
	}
	return nil
}

// members visits the members of a JSON object in their order.
func members(raw []byte, visit func(name string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		text, ok := name.(string)
		if !ok {
			return errors.New("a member without a name")
		}
		if err := visit(text, value); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

// present is how many records have a value other than null here.
func (n *node) present() int { return n.objects + n.arrays + n.texts + n.numbers + n.booleans }

// descends reports whether the members of n become columns of their own.
func (n *node) descends(depth int) bool {
	return n.objects > 0 && n.objects == n.present() && len(n.children) > 0 && len(n.path) < depth && !n.isMap()
}

// isMap reports whether the names in the objects at n are data, such as identifiers.
func (n *node) isMap() bool {
	if len(n.children) <= mapChildren {
		return false
	}
	seen := 0
	for _, c := range n.children {
		seen += c.present() + c.nulls
	}
	return float64(seen) < mapShare*float64(len(n.children))*float64(n.objects)
}

// leaves returns the places that become columns, in the order of the records. No path has more than depth steps.
func (n *node) leaves(depth int) []*node {
	var out []*node
	for _, c := range n.children {
		if c.descends(depth) {
			out = append(out, c.leaves(depth)...)
		} else {
			out = append(out, c)
		}
	}
	return out
}
