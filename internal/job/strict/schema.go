package strict

// Schema is JSON Schema (draft 2020-12) as plain data. "title" is the kind of a text as messages name it; the caller
// may add a description.
type Schema map[string]any

func textSchema(kind string) Schema { return Schema{"type": "string", "title": kind, "minLength": 1} }

// writtenSchema also accepts 0, the only number that needs no unit.
func writtenSchema(kind string) Schema {
	return Schema{"type": []any{"string", "integer"}, "title": kind, "minimum": 0, "maximum": 0}
}

func wordSchema(words []string) Schema {
	enum := make([]any, len(words))
	for i, w := range words {
		enum[i] = w
	}
	return Schema{"enum": enum}
}

func mappingSchema(keys []Key) Schema {
	properties, required := Schema{}, []any{}
	for _, k := range keys {
		properties[k.Name] = k.Value.Schema
		if k.Required {
			required = append(required, k.Name)
		}
	}
	s := Schema{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}
