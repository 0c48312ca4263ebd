package mergecheck

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kappactl/kappactl/internal/job"
)

// encode writes the fields of a record in the source's format.
func encode(source job.Source, fields map[string]any) ([]byte, error) {
	switch source.Format {
	case "csv":
		row := make([]string, len(source.Columns))
		for i, c := range source.Columns {
			text, err := plain(fields[c.Name])
			if err != nil {
				return nil, err
			}
			row[i] = text
		}
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		if err := w.Write(row); err != nil {
			return nil, err
		}
		w.Flush()
		return b.Bytes(), w.Error()
	case "raw":
		switch c := source.Columns[0]; c.Type {
		case "json", "jsonb":
			return json.Marshal(fields[c.Name])
		default:
			text, err := plain(fields[c.Name])
			return []byte(text), err
		}
	}
	object, err := placed(source.Columns, fields)
	if err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// placed returns a JSON value that has each field at its column's path.
func placed(columns []job.Column, fields map[string]any) (any, error) {
	type field struct {
		place []job.Step
		value any
	}
	var all []field
	for _, c := range columns {
		place, err := c.Steps()
		if err != nil {
			return nil, err
		}
		if v, found := fields[c.Name]; found {
			all = append(all, field{place, v})
		}
	}
	slices.SortStableFunc(all, func(a, b field) int { return len(a.place) - len(b.place) })
	var root any = map[string]any{}
	for _, f := range all {
		root = put(root, f.place, f.value)
	}
	return root, nil
}

// put returns at with v inserted at a path inside it. It keeps a value that is already there, and a value on the way
// that is not an object or array.
func put(at any, place []job.Step, v any) any {
	switch inside := at.(type) {
	case nil:
		if len(place) == 0 {
			return v
		}
		if place[0].Index >= 0 {
			return put([]any{}, place, v)
		}
		return put(map[string]any{}, place, v)
	case map[string]any:
		if len(place) > 0 && place[0].Index < 0 {
			inside[place[0].Name] = put(inside[place[0].Name], place[1:], v)
		}
	case []any:
		if len(place) > 0 && place[0].Index >= 0 {
			for len(inside) <= place[0].Index {
				inside = append(inside, nil)
			}
			inside[place[0].Index] = put(inside[place[0].Index], place[1:], v)
			return inside
		}
	}
	return at
}

// plain returns a value as text; a missing value becomes the empty text.
func plain(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case int, bool, float64, int64:
		return fmt.Sprint(v), nil
	}
	text, err := json.Marshal(v)
	return string(text), err
}
