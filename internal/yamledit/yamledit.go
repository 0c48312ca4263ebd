// Package yamledit changes the tree of a YAML document and keeps its order and comments.
package yamledit

import (
	"bytes"
	"errors"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Encode writes a document with an indentation of two.
func Encode(doc *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	err := errors.Join(encoder.Encode(doc), encoder.Close())
	return b.Bytes(), err
}

// Get is the value of a key of a mapping; nil when it has none.
func Get(m *yaml.Node, key string) *yaml.Node {
	if i := find(m, key); i >= 0 {
		return m.Content[i+1]
	}
	return nil
}

// find is the position of a key in the content of a mapping, or -1.
func find(m *yaml.Node, key string) int {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// Below is the mapping at a path, made when it is missing.
func Below(m *yaml.Node, at ...string) *yaml.Node {
	for _, key := range at {
		i := find(m, key)
		if i < 0 {
			i = len(m.Content)
			name := &yaml.Node{}
			name.SetString(key)
			m.Content = append(m.Content, name, &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"})
		}
		m = m.Content[i+1]
	}
	return m
}

// Put sets a key of a mapping and keeps the comments of the old value; a list is written on one line.
func Put(m *yaml.Node, key string, v any) error {
	n := &yaml.Node{}
	if err := n.Encode(v); err != nil {
		return err
	}
	if n.Kind == yaml.SequenceNode {
		n.Style = yaml.FlowStyle
	}
	i := find(m, key)
	if i < 0 {
		name := &yaml.Node{}
		name.SetString(key)
		m.Content = append(m.Content, name, n)
		return nil
	}
	old := m.Content[i+1]
	n.HeadComment, n.LineComment, n.FootComment = old.HeadComment, old.LineComment, old.FootComment
	if old.Kind != yaml.ScalarNode || old.Value != n.Value || old.Tag != n.Tag {
		m.Content[i+1] = n
	}
	return nil
}

// PutFirst is Put for a key that comes first when the mapping does not have it yet.
func PutFirst(m *yaml.Node, key string, v any) error {
	there := find(m, key) >= 0
	if err := Put(m, key, v); err != nil || there {
		return err
	}
	last := len(m.Content) - 2
	m.Content = slices.Concat(m.Content[last:], m.Content[:last])
	return nil
}

// Remove removes a key of a mapping and its value.
func Remove(m *yaml.Node, key string) {
	if i := find(m, key); i >= 0 {
		m.Content = slices.Delete(m.Content, i, i+2)
	}
}
