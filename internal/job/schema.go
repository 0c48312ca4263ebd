package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// Schema returns the JSON Schema (draft 2020-12) of the job file, built from the table of keys that Parse uses. Every
// file that Parse accepts is valid by it; Parse also checks conditions that a single value cannot show.
func Schema() ([]byte, error) {
	root := specKeys(defaults(), SQL).Schema
	byEngine(root)
	describe(root, "")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "kappactl job file"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		return nil, fmt.Errorf("write the schema of the job file: %w", err)
	}
	return b.Bytes(), nil
}

// byEngine makes the keys that only one engine requires depend on the engine.
func byEngine(root strict.Schema) {
	source := below(below(root["properties"])["source"])
	root["required"] = without(root["required"], "query")
	source["required"] = without(source["required"], "columns")
	required := func(names ...any) strict.Schema { return strict.Schema{"required": names} }
	root["if"] = strict.Schema{
		"required":   []any{"engine"},
		"properties": strict.Schema{"engine": strict.Schema{"const": string(ProgramRun)}},
	}
	root["then"] = strict.Schema{"required": []any{"program"}, "properties": strict.Schema{"serve": required("table")}}
	root["else"] = strict.Schema{"required": []any{"query"}, "properties": strict.Schema{"source": required("columns")}}
}

func without(names any, name string) []any {
	list, _ := names.([]any)
	return slices.DeleteFunc(slices.Clone(list), func(n any) bool { return n == name })
}

// describe puts meanings and patterns into the schema at path and below.
func describe(s strict.Schema, path string) {
	if text := meaning(path); text != "" {
		s["description"] = text
	}
	if title, ok := s["title"].(string); ok {
		if pattern := patternOf(title); pattern != "" {
			s["pattern"] = pattern
		}
	}
	if properties, ok := s["properties"].(strict.Schema); ok {
		for name, v := range properties {
			describe(below(v), strict.Join(path, name))
		}
	}
	if items, ok := s["items"].(strict.Schema); ok {
		describe(items, path+"[]")
	}
	if entry, ok := s["additionalProperties"].(strict.Schema); ok {
		describe(entry, path+".NAME")
	}
	choices, _ := s["anyOf"].([]any)
	for _, c := range choices {
		part := below(c)
		describe(part, path)
		delete(part, "description") // allowed next to anyOf
	}
}

func below(v any) strict.Schema {
	s, _ := v.(strict.Schema)
	return s
}

// patternOf returns the pattern of texts of one kind; it never rejects what Parse accepts.
func patternOf(kind string) string {
	switch kind {
	case "name":
		return NamePattern.String()
	case "topic":
		return topicPattern.String()
	case "duration":
		return `^(0|([0-9.]+(d|h|m|s|ms|us|µs|μs|ns))+)$`
	case "percentage":
		return percentPattern.String() + "|^0$"
	case "size":
		return `^[0-9]+(\.[0-9]+)? ?([kMGT]i?)?B$`
	case "location":
		return `^file:///.|` + bucketLocation.String()
	case "rate":
		return `^(0|[0-9]+(\.[0-9]+)? ?([kMGT]i?)?B ?/s)$`
	case "path":
		return `^\$.`
	case "fail":
		return `^fail$`
	case "start point":
		return `^(earliest|latest|-[0-9].*|[0-9]{4}-[0-9]{2}-[0-9]{2}.*)$`
	}
	return ""
}
