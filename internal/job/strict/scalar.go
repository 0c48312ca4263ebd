package strict

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Text accepts a non-empty text. Numbers, booleans and times must be quoted, so that YAML does not change them.
func Text(to *string) Value {
	return Parsed("text", to, func(s string) (string, error) {
		if strings.TrimSpace(s) == "" {
			return "", Want("the text is empty", "write one, or remove the key if it is optional")
		}
		return s, nil
	})
}

// Texts accepts a list of texts.
func Texts(to *[]string) Value {
	return Each(func() Value {
		var s string
		return Then(Text(&s), func(*Document, string) { *to = append(*to, s) })
	})
}

// OneOf accepts one of the words.
func OneOf[T ~string](to *T, words ...T) Value {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	v := Parsed(strings.Join(all, " | "), to, func(s string) (T, error) {
		for _, w := range words {
			if s == string(w) {
				return w, nil
			}
		}
		return "", Want(fmt.Sprintf("unknown value %q", clip(s)), Suggest(s, all))
	})
	v.Schema = wordSchema(all)
	return v
}

// Bool accepts true or false.
func Bool(to *bool) Value {
	return Value{
		Type: "true | false", Schema: Schema{"type": "boolean"},
		Read: func(d *Document, n *yaml.Node, path string) {
			if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
				d.Refuse(n, path, "want true or false, not "+kindOf(n), "write true or false, without quotes")
				return
			}
			*to = strings.EqualFold(n.Value, "true")
		},
	}
}

// Int accepts a whole number between least and most.
func Int[T ~int | ~int32 | ~int64](to *T, least, most T) Value {
	schema := Schema{"type": "integer", "minimum": int64(least), "maximum": int64(most)}
	return Value{Type: "whole number", Schema: schema, Read: func(d *Document, n *yaml.Node, path string) {
		i, err := strconv.ParseInt(n.Value, 10, 64)
		switch {
		case n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil:
			d.Refuse(n, path, "want a whole number, not "+kindOf(n), fmt.Sprintf("write a number from %d to %d", least, most))
		case i < int64(least) || i > int64(most):
			d.Refuse(n, path, fmt.Sprintf("%d is out of range", i), fmt.Sprintf("write a number from %d to %d", least, most))
		default:
			*to = T(i)
		}
	}}
}

// Parsed accepts a text and stores the result of parse. An error created by Want has a fix.
func Parsed[T any](kind string, to *T, parse func(string) (T, error)) Value {
	return parsed(kind, textSchema(kind), to, parse, "!!str")
}

// Written is Parsed for values such as 7d, 0.1% or a time, which YAML may read as a number or a time.
func Written[T any](kind string, to *T, parse func(string) (T, error)) Value {
	return parsed(kind, writtenSchema(kind), to, parse, "!!str", "!!int", "!!float", "!!timestamp")
}

func parsed[T any](kind string, schema Schema, to *T, parse func(string) (T, error), tags ...string) Value {
	return Value{Type: kind, Schema: schema, Read: func(d *Document, n *yaml.Node, path string) {
		if n.Kind != yaml.ScalarNode {
			d.Refuse(n, path, "want a "+kind+", not "+kindOf(n), "write a "+kind)
			return
		}
		taken := false
		for _, tag := range tags {
			taken = taken || n.Tag == tag
		}
		if !taken {
			d.Refuse(n, path, "want a "+kind+", not "+kindOf(n), "put it in quotes if it is a text")
			return
		}
		v, err := parse(n.Value)
		if err != nil {
			cause, cure := Explain(err)
			d.Refuse(n, path, cause, cure)
			return
		}
		*to = v
	}}
}

// Then reads v and, if that causes no fault, calls then.
func Then(v Value, then func(d *Document, path string)) Value {
	read := v.Read
	v.Read = func(d *Document, n *yaml.Node, path string) {
		before := len(d.Faults)
		read(d, n, path)
		if len(d.Faults) == before {
			then(d, path)
		}
	}
	return v
}

// Either reads text nodes with one Value and mappings, or a list of them, with another, whose keys it reports.
func Either(text, mapping Value) Value {
	schema := Schema{"anyOf": []any{text.Schema, mapping.Schema}}
	kind, word := yaml.MappingNode, "mapping"
	if mapping.List {
		kind, word = yaml.SequenceNode, "list"
	}
	return Value{
		Type: text.Type + " | " + word, Keys: mapping.Keys, List: mapping.List, Schema: schema,
		Read: func(d *Document, n *yaml.Node, path string) {
			if n.Kind == kind {
				mapping.Read(d, n, path)
				return
			}
			text.Read(d, n, path)
		},
	}
}
