package job

import (
	"cmp"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// uniqueTexts takes a list of at least one text that passes check, none of them twice.
func uniqueTexts(to *[]string, kind string, check func(string) (string, error)) strict.Value {
	return nonEmpty(kind, texts(to, kind, check))
}

func texts(to *[]string, kind string, check func(string) (string, error)) strict.Value {
	list := strict.Each(func() strict.Value {
		var one string
		return strict.Then(strict.Parsed(kind, &one, check), func(d *strict.Document, path string) {
			if contains(*to, one) {
				d.RefuseAt(path, fmt.Sprintf("%s %q occurs twice", kind, one), "keep one of the two")
				return
			}
			*to = append(*to, one)
		})
	})
	list.Schema["uniqueItems"] = true
	return list
}

func nonEmpty(kind string, list strict.Value) strict.Value {
	read := list.Read
	list.Schema["minItems"] = 1
	list.Read = func(d *strict.Document, n *yaml.Node, path string) {
		if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
			d.Refuse(n, path, "the list is empty", "name at least one "+kind)
			return
		}
		read(d, n, path)
	}
	return list
}

func topicList(to *[]string) strict.Value { return uniqueTexts(to, "topic", topicName) }

// nameList takes column names; an empty list is one that is not there.
func nameList(to *[]string) strict.Value { return texts(to, "column name", columnName) }

func indexList(to *[][]string) strict.Value {
	return strict.Each(func() strict.Value {
		var columns []string
		return strict.Then(uniqueTexts(&columns, "column name", columnName), func(*strict.Document, string) {
			*to = append(*to, columns)
		})
	})
}

// columnMap takes NAME: TYPE, or NAME with a mapping of the type and where the value is, in the order of the file.
func columnMap(to *[]Column) strict.Value {
	names := map[string]string{}
	columns := strict.Named("mapping of column names to types",
		func(d *strict.Document, name, path string, key *yaml.Node) (strict.Value, bool) {
			if strings.HasPrefix(name, "_") {
				d.Refuse(key, path, fmt.Sprintf("the column name %q begins with _", name),
					"names with _ in front are kept for kappactl; give the column another name and say which field it reads: "+
						cmp.Or(strings.TrimLeft(name, "_"), "value")+": {type: text, field: "+name+"}")
				return strict.Value{}, false
			}
			if !freshColumn(d, names, name, path, key) {
				return strict.Value{}, false
			}
			c := Column{Name: name}
			return strict.Then(strict.Either(strict.Parsed("type", &c.Type, ParseType), typeKeys(&c)),
				func(d *strict.Document, path string) {
					if c.Unit != "" && c.Type != timestampType && c.Type != timestamptzType {
						d.RefuseAt(path+".unit", "a unit on a column of type "+c.Type,
							"remove it; only timestamp and timestamptz can be epoch numbers")
						return
					}
					if d.Node(path+".field") != nil && d.Node(path+".path") != nil {
						d.RefuseAt(path+".path", "the column has both field and path", "keep path: it leads to fields at the top as well")
						return
					}
					if c.Path == PathText([]Step{{Name: name, Index: -1}}) {
						c.Path = "" // where the value is without it
					}
					*to = append(*to, c)
				}), true
		})
	entry := strict.Either(strict.Parsed("type", new(string), ParseType), typeKeys(&Column{}))
	columns.Keys = []strict.Key{{Name: "NAME", Value: entry}}
	columns.Schema["additionalProperties"] = entry.Schema
	return filled("column", columns)
}

func typeKeys(c *Column) strict.Value {
	var field string
	return strict.Mapping(
		strict.Key{Name: "type", Required: true, Value: strict.Parsed("type", &c.Type, ParseType)},
		strict.Key{Name: "unit", Value: strict.OneOf(&c.Unit, "s", "ms", "us", "ns")},
		strict.Key{Name: "field", Value: strict.Then(strict.Text(&field), func(*strict.Document, string) {
			c.Path = PathText([]Step{{Name: field, Index: -1}})
		})},
		strict.Key{Name: "path", Value: strict.Parsed("path", &c.Path, pathText)},
	)
}

// freshColumn refuses names that cannot be columns. DuckDB does not tell names apart that differ in case only.
func freshColumn(d *strict.Document, names map[string]string, name, path string, key *yaml.Node) bool {
	if _, err := columnName(name); err != nil {
		cause, cure := strict.Explain(err)
		d.Refuse(key, path, cause, cure)
		return false
	}
	folded := foldName(name)
	if other, twice := names[folded]; twice {
		d.Refuse(key, path, fmt.Sprintf("%q and %q differ in case only, which SQL does not tell apart", other, name),
			"keep one of the two")
		return false
	}
	names[folded] = name
	return true
}

func filled(kind string, v strict.Value) strict.Value {
	read := v.Read
	v.Schema["minProperties"] = 1
	v.Read = func(d *strict.Document, n *yaml.Node, path string) {
		if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
			d.Refuse(n, path, "the mapping is empty", "name at least one "+kind)
			return
		}
		read(d, n, path)
	}
	return v
}

func serveColumnMap(to *[]ServeColumn) strict.Value {
	names := map[string]string{}
	columns := strict.Named("mapping of column names to PostgreSQL expressions",
		func(d *strict.Document, name, path string, key *yaml.Node) (strict.Value, bool) {
			if !freshColumn(d, names, name, path, key) {
				return strict.Value{}, false
			}
			c := ServeColumn{Name: name}
			return strict.Then(strict.Parsed("expression", &c.Expr, expression),
				func(*strict.Document, string) { *to = append(*to, c) }), true
		})
	columns.Schema["additionalProperties"] = strict.Text(new(string)).Schema
	return columns
}
