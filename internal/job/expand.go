package job

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// expander replaces the variables in the values of a YAML tree. It runs once YAML was parsed, so that no value of a
// variable can add keys, lists or comments.
type expander struct {
	Variables
	spec  *Spec
	doc   *strict.Document
	nodes map[*yaml.Node]expanded
	size  int // bytes of the values
}

// tree replaces the variables in all values below n, which is at path.
func (x *expander) tree(n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.ScalarNode:
		x.scalar(n, path)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if strings.Contains(key.Value, "${") {
				x.doc.Refuse(key, strict.Join(path, key.Value), "the key has a variable in it", "use variables in values only")
			}
			x.tree(n.Content[i+1], strict.Join(path, key.Value))
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			x.tree(item, fmt.Sprintf("%s[%d]", path, i))
		}
	case yaml.DocumentNode, yaml.AliasNode:
		// The reader takes the document apart and refuses aliases.
	}
}

func (x *expander) scalar(n *yaml.Node, path string) {
	if !strings.Contains(n.Value, "${") {
		x.size += len(n.Value)
		return
	}
	e, errs := x.expand(n.Value)
	for _, err := range errs {
		cause, cure := strict.Explain(err.error)
		f := strict.Fault{Line: n.Line, Column: n.Column, Path: path, Cause: cause, Cure: cure}
		if line, column, ok := x.spec.inside(placeOf(n), err.offset); ok {
			f.Line, f.Column = line, column
		}
		x.doc.Faults = append(x.doc.Faults, f)
	}
	if x.size += len(e.text); x.size > strict.MaxBytes {
		x.doc.Refuse(n, path, fmt.Sprintf("with its variables the file holds more than %d bytes", strict.MaxBytes),
			"give shorter values")
	}
	if len(errs) > 0 {
		return
	}
	x.nodes[n] = e
	if n.Value = e.text; n.Style == 0 {
		n.Tag = plainTag(e.text)
	}
}

// plainTag is the tag that YAML gives a text without quotes: that of a number, true, a time or nothing, else that of a
// text.
func plainTag(text string) string {
	var doc yaml.Node
	if yaml.Unmarshal([]byte(text), &doc) != nil || len(doc.Content) == 0 {
		if strings.TrimSpace(text) == "" {
			return "!!null"
		}
		return "!!str"
	}
	if n := doc.Content[0]; n.Kind == yaml.ScalarNode && n.Style == 0 && n.Anchor == "" && n.Value == text {
		return n.Tag
	}
	return "!!str"
}

// names are those of the variables in the file, each once.
func (x *expander) names() []string {
	var out []string
	for _, e := range x.nodes {
		out = append(out, e.names...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// text is the file with the values of its variables in their place, so that reading it gives the same job without
// them. It is the file itself when it has no variables.
func (x *expander) text(root *yaml.Node, file []byte) ([]byte, error) {
	if len(x.nodes) == 0 {
		return file, nil
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(x.record(root)); err != nil {
		return nil, fmt.Errorf("write the job file with its variables' values: %w", err)
	}
	return b.Bytes(), nil
}

// record is a copy of the tree to be written. A ${ in it is written $${. Folded texts, and those that begin
// with white space, are written in quotes: the library does not write all of them so that they are read back.
func (x *expander) record(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out.Content[i] = x.record(c)
	}
	if _, found := x.nodes[n]; found {
		out.Value = strings.ReplaceAll(n.Value, "${", "$${")
	}
	if n.Style&yaml.FoldedStyle != 0 || strings.TrimLeft(n.Value, " \t\n") != n.Value {
		out.Style = yaml.DoubleQuotedStyle
	}
	return &out
}
