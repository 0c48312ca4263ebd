package law

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
)

// encode writes the fields of a record as the source's format has them.
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
	return json.Marshal(fields)
}

// plain is a value as text: a missing one is empty.
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
