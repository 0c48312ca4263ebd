package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// asYAML writes the JSON of v as block YAML, with keys in the same order and numbers with all their digits.
func asYAML(w io.Writer, v any) error {
	text, err := compact(v)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	doc, err := yamlNode(d)
	if err != nil {
		return fmt.Errorf("print YAML: %w", err)
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(doc); err != nil {
		return fmt.Errorf("print YAML: %w", err)
	}
	return e.Close()
}

// yamlNode reads the next value.
func yamlNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		return yamlParts(d, t)
	case string:
		return yamlText(t), nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: t.String()}, nil // no tag: yaml would print that of a long number
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(t)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}

// yamlParts reads a list or a mapping; an empty one uses flow style.
func yamlParts(d *json.Decoder, open json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if open == '{' {
		n.Kind = yaml.MappingNode
	}
	for d.More() {
		part, err := yamlNode(d)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, part) // the decoder returns the key of a mapping before its value
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	_, err := d.Token()
	return n, err
}

// yamlText quotes a text that YAML 1.1 would read as a boolean or a base-60 number.
func yamlText(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	switch strings.ToLower(text) {
	case "y", "n", "yes", "no", "on", "off":
		n.Style = yaml.DoubleQuotedStyle
	}
	if strings.Contains(text, ":") && strings.Trim(text, "0123456789:.+-_") == "" {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
