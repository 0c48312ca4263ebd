package scaffold

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// rowShare is how many of the records must be rows of CSV with the same number of fields.
const rowShare = 0.95

// row returns the fields of a value that is one row of CSV. Text with spaces behind its commas is prose.
func row(value []byte) []string {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(value, []byte("\ufeff"))))
	fields, err := r.Read()
	if err != nil || len(fields) < 2 || bytes.Contains(value, []byte(", ")) && !bytes.Contains(value, []byte{'"'}) {
		return nil
	}
	if _, err := r.Read(); err != io.EOF {
		return nil
	}
	return fields
}

// rows declares the fields of records that are rows of CSV, and reports whether they are.
func (d *draft) rows(values []*kgo.Record) (bool, error) {
	count, all := map[int]int{}, make([][]string, 0, len(values))
	for _, r := range values {
		fields := row(r.Value)
		count[len(fields)]++
		all = append(all, fields)
	}
	width := 0
	for n, times := range count {
		if n > 1 && float64(times) >= rowShare*float64(len(values)) {
			width = n
		}
	}
	if width == 0 || width > maxColumns {
		return false, nil
	}
	all = slices.DeleteFunc(all, func(fields []string) bool { return len(fields) != width })
	head := header(values, all)
	d.source.Format = "csv"
	if head != nil {
		all = slices.DeleteFunc(all, func(fields []string) bool { return slices.Equal(fields, head) })
	}
	for i, name := range rowNames(head, width) {
		n := newNode(name, []job.Step{{Name: name, Index: -1}})
		for _, fields := range all {
			if err := n.add(jsonOf(fields[i])); err != nil {
				return false, err
			}
		}
		c, note := candidate{typ: "text"}, ""
		if kinds(n) < 2 {
			note = n.note(len(all))
		}
		if kinds(n) == 1 {
			c = n.infer()
		}
		one, err := newColumn(name, n.path, c)
		if err != nil {
			return false, err
		}
		d.columns = append(d.columns, &column{Column: one, node: n, label: c.typ, note: note})
	}
	return true, nil
}

// rowNames are the names of the columns: those of the first row, else their numbers.
func rowNames(head []string, width int) []string {
	names, taken := make([]string, width), map[string]bool{}
	for i := range names {
		names[i] = fmt.Sprintf("c%d", i+1)
		if head != nil {
			names[i] = columnName([]job.Step{{Name: head[i]}})
		}
		names[i] = unique(names[i], taken)
	}
	return names
}

// headName matches names of columns in the first row of a file.
var headName = regexp.MustCompile(`^[\pL_][\pL\pN_ .-]*$`)

// header returns the first row of a file that was produced with its column names: names alone, above a column of
// numbers.
func header(values []*kgo.Record, all [][]string) []string {
	for _, r := range values {
		head := row(r.Value)
		if r.Offset != 0 || len(head) != len(all[0]) ||
			slices.ContainsFunc(head, func(s string) bool { return !headName.MatchString(s) }) {
			continue
		}
		for i := range head {
			numbers := len(all) > 1
			for _, fields := range all {
				numbers = numbers && (slices.Equal(fields, head) || fields[i] != "" && jsonOf(fields[i])[0] != '"')
			}
			if numbers {
				return head
			}
		}
	}
	return nil
}

// jsonOf is a field of a row as JSON: a number, true, false, null for no text, else a text.
func jsonOf(field string) json.RawMessage {
	if field == "" {
		return json.RawMessage("null")
	}
	if field == "true" || field == "false" {
		return json.RawMessage(field)
	}
	var number json.Number
	if json.Unmarshal([]byte(field), &number) == nil && strings.TrimSpace(field) == field && field[0] != '"' &&
		field != "null" {
		return json.RawMessage(field)
	}
	var b strings.Builder
	writeJSON(&b, field)
	return json.RawMessage(b.String())
}

// maskRow masks the fields of a row of CSV, but for times and booleans.
func (d *draft) maskRow(value string) string {
	fields := row([]byte(value))
	if len(fields) != len(d.columns) {
		return maskText(value)
	}
	for i, c := range d.columns {
		switch {
		case slices.Contains([]string{"timestamptz", "date", "time", "boolean"}, c.label):
		case len(jsonOf(fields[i])) > 0 && jsonOf(fields[i])[0] != '"':
			fields[i] = maskNumber(fields[i])
		default:
			fields[i] = maskText(fields[i])
		}
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(fields) // into memory
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}
