package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// UnmarshalJSON reads a Test with its numbers as json.Number, like Parse, so that 2^53 + 1 keeps its value.
func (t *Test) UnmarshalJSON(text []byte) error {
	type plain Test
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode((*plain)(t)); err != nil {
		return fmt.Errorf("read test: %w", err)
	}
	return nil
}

func testList(to *[]Test) strict.Value {
	names := map[string]bool{}
	return strict.Each(func() strict.Value {
		var t Test
		keys := strict.Mapping(
			strict.Key{Name: "name", Required: true, Value: strict.Parsed("test name", &t.Name, labelName)},
			strict.Key{Name: "given", Required: true, Value: givenList(&t.Given)},
			strict.Key{Name: "expect", Required: true, Value: rowList(&t.Expect)},
			strict.Key{Name: "dead_letters", Value: recordNumbers(&t.DeadLetters)},
		)
		return strict.Then(keys, func(d *strict.Document, path string) {
			if names[t.Name] {
				d.RefuseAt(path+".name", fmt.Sprintf("test %q occurs twice", t.Name), "give each test a name of its own")
				return
			}
			names[t.Name] = true
			*to = append(*to, t)
		})
	})
}

// maxGiven is the largest number of a given record.
const maxGiven = 1_000_000

// recordNumbers takes numbers of given records; an empty list is no dead letter.
func recordNumbers(to *[]int) strict.Value {
	return strict.Each(func() strict.Value {
		var n int
		return strict.Then(strict.Int(&n, 1, maxGiven), func(*strict.Document, string) { *to = append(*to, n) })
	})
}

// rowList takes rows as mappings of column names to plain values; an empty list expects no row.
func rowList(to *[]map[string]any) strict.Value {
	*to = []map[string]any{}
	return strict.Each(func() strict.Value {
		schema := strict.Schema{"type": "object", "title": "row"}
		return strict.Value{
			Type: "mapping of column names to values", Schema: schema,
			Read: func(d *strict.Document, n *yaml.Node, path string) {
				if n.Kind != yaml.MappingNode {
					d.Refuse(n, path, "want a row", "write it as {column: value, …}")
					return
				}
				if row, ok := anyValue(d, n, path).(map[string]any); ok {
					*to = append(*to, row)
				}
			},
		}
	})
}

// anyValue is n as JSON would hold it. Numbers keep their text.
func anyValue(d *strict.Document, n *yaml.Node, path string) any {
	if n.Kind == yaml.MappingNode {
		row := map[string]any{}
		d.Entries(n, path, func(name, at string, _, value *yaml.Node) { row[name] = anyValue(d, value, at) })
		return row
	}
	if n.Kind == yaml.SequenceNode {
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			list[i] = anyValue(d, c, fmt.Sprintf("%s[%d]", path, i))
		}
		return list
	}
	if n.Tag == "!!null" && n.Kind == yaml.ScalarNode {
		return nil
	}
	if !d.Plain(n, path) {
		return nil
	}
	switch n.Tag {
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		var number json.Number
		if json.Unmarshal([]byte(n.Value), &number) != nil || number.String() != n.Value {
			d.Refuse(n, path, "the number "+n.Value+" is not written as in JSON",
				"write plain decimal digits, or put it in quotes")
			return nil
		}
		return number
	}
	return n.Value
}
