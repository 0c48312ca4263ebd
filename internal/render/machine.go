package render

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// Format is an output format for programs.
type Format string

// The formats. All derive from the same JSON: its fields, in their order, are the keys of YAML and the columns of CSV.
const (
	FormatJSON  Format = "json"
	FormatLines Format = "jsonl" // an array as one line per element, anything else as one line
	FormatYAML  Format = "yaml"
	FormatCSV   Format = "csv" // RFC 4180 with a header line: an array as one row per element, an object as one row
)

// Formats lists every Format.
func Formats() []Format { return []Format{FormatJSON, FormatLines, FormatYAML, FormatCSV} }

// Write writes v in a format. NaN and infinities are an error.
func Write(w io.Writer, f Format, v any) error {
	switch f {
	case FormatJSON:
		return JSON(w, v)
	case FormatLines:
		return lines(w, v)
	case FormatYAML:
		return asYAML(w, v)
	case FormatCSV:
		return asCSV(w, v)
	}
	return fmt.Errorf("unknown format %q", f)
}

// Line writes v as strict JSON on one line.
func Line(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

func compact(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := Line(&b, v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// elements returns the elements of v if it is an array, otherwise v alone.
func elements(v any) ([]json.RawMessage, error) {
	text, err := compact(v)
	if err != nil {
		return nil, err
	}
	if len(text) == 0 || text[0] != '[' {
		return []json.RawMessage{text}, nil
	}
	var out []json.RawMessage
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("print JSON: %w", err)
	}
	return out, nil
}

func lines(w io.Writer, v any) error {
	all, err := elements(v)
	if err != nil {
		return err
	}
	for _, one := range all {
		if _, err := fmt.Fprintf(w, "%s\n", one); err != nil {
			return err
		}
	}
	return nil
}

func asCSV(w io.Writer, v any) error {
	all, err := elements(v)
	if err != nil {
		return err
	}
	names := fieldsOf(v)
	rows := make([]map[string]string, len(all))
	for i, one := range all {
		if rows[i], err = cells(one, &names); err != nil {
			return err
		}
	}
	out := csv.NewWriter(w)
	table := [][]string{names}
	for _, row := range rows {
		line := make([]string, len(names))
		for i, name := range names {
			line[i] = row[name]
		}
		table = append(table, line)
	}
	return out.WriteAll(table)
}

// fieldsOf returns the field names of a list's element type, so that an empty list has a header too.
func fieldsOf(v any) []string {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for _, f := range reflect.VisibleFields(t.Elem()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.Anonymous && name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// cells returns the fields of an object as text: null is empty, arrays and objects are JSON. It appends new names to
// names.
func cells(object json.RawMessage, names *[]string) (map[string]string, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("print CSV: %.40s is not an object", object)
	}
	out := map[string]string{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("print CSV: %w", err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("print CSV: %w", err)
		}
		name := fmt.Sprint(key)
		if !slices.Contains(*names, name) {
			*names = append(*names, name)
		}
		out[name], err = cell(value)
		if err != nil {
			return nil, fmt.Errorf("print CSV: %w", err)
		}
	}
	return out, nil
}

func cell(value json.RawMessage) (string, error) {
	switch {
	case string(value) == "null":
		return "", nil
	case len(value) > 0 && value[0] == '"':
		var text string
		err := json.Unmarshal(value, &text)
		return text, err
	}
	return string(value), nil
}
