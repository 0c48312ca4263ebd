package scaffold

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/kappactl/kappactl/internal/job"
)

// write is the text of the job file. Without rows the test expects none.
func (d *draft) write(p plan, given []job.Given, rows []string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `# yaml-language-server: $schema=./job.schema.json
#
# Written by kappactl new from %d records of the topic %s. Every key is described in docs/job-file.md.
# For completion in an editor: kappactl schema > job.schema.json
job: %s
source:
  topics: [%s]
  format: %s
`, d.Records, d.Topic, d.Job, scalar(d.Topic), d.source.Format)
	d.writeColumns(&b)
	d.writeOnError(&b)
	about, where := "", ""
	if p.where != "" {
		about = "# The records are changes of rows: each takes the row before it off, and adds the row after it (docs/formats.md).\n"
		where = "  WHERE " + p.where + "\n"
	}
	fmt.Fprintf(&b, `# DuckDB SQL over the records, which are the relation source. The columns of GROUP BY are the key of the result;
# each other column is an aggregate that merges (docs/queries.md).
%squery: |
  SELECT %s
  FROM %s
%s  GROUP BY %s
serve:
  view: %s
  # columns: {more: "PostgreSQL SQL, computed from the columns of the query"}
  # keep: 90d
# A new version is promoted only when each check returns true (docs/checks.md).
checks:
  - {name: not empty, sql: "SELECT count(*) > 0 FROM candidate"}
tests:
  - name: two records of the topic
    given:
`, about, strings.Join(p.items, ", "), p.from, where, strings.Join(p.keys, ", "), scalar(d.Draft.View))
	for _, g := range given {
		if g.Timestamp == nil {
			fmt.Fprintf(&b, "      - %s\n", quoted(*g.Value))
			continue
		}
		fmt.Fprintf(&b, "      - value: %s\n        timestamp: %s\n", quoted(*g.Value),
			g.Timestamp.Format("2006-01-02T15:04:05.999Z07:00"))
	}
	if len(rows) == 0 {
		b.WriteString("    expect: []\n")
		return []byte(b.String())
	}
	b.WriteString("    expect:\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "      - %s\n", r)
	}
	return []byte(b.String())
}

// writeOnError writes what becomes of records without a value and of those that do not fit.
func (d *draft) writeOnError(b *strings.Builder) {
	switch {
	case d.changes != nil:
		b.WriteString("  # Debezium writes a record without a value (a tombstone) after each delete; the delete is enough.\n" +
			"  on_error: {tombstones: skip, dead_letter: {max: 0.1%}}\n")
	case d.Tombstones > 0:
		b.WriteString("  # Records without a value (tombstones) are left out. With serve.key they delete the row of their key.\n" +
			"  on_error: {tombstones: skip, dead_letter: {max: 0.1%}}\n")
	default:
		b.WriteString("  on_error: {dead_letter: {max: 0.1%}}\n")
	}
	if d.Rejected > 0 {
		of := "sampled records would become dead letters, the first"
		if d.Rejected == 1 {
			of = "sampled record would become a dead letter"
		}
		fmt.Fprintf(b, "  # %d %s: %s\n", d.Rejected, of, comment(d.First))
	}
}

func (d *draft) writeColumns(b *strings.Builder) {
	b.WriteString("  columns:\n")
	if d.source.Format == "csv" {
		b.WriteString("    # The fields of a row, in their order: every field has a column, and you choose the names.\n")
	}
	for _, c := range d.columns {
		declared := c.label
		if c.Path != "" || c.Unit != "" {
			parts := []string{"type: " + scalar(c.label)}
			if c.Unit != "" {
				parts = append(parts, "unit: "+c.Unit)
			}
			switch {
			case c.Path == "":
			case len(c.path) == 1 && printable(c.path[0].Name) && c.path[0].Name != "":
				parts = append(parts, "field: "+scalar(c.path[0].Name))
			default:
				parts = append(parts, "path: "+scalar(c.Path))
			}
			declared = "{" + strings.Join(parts, ", ") + "}"
		}
		fmt.Fprintf(b, "    %s: %s", scalar(c.Name), declared)
		if c.note != "" {
			fmt.Fprintf(b, "  # %s", c.note)
		}
		b.WriteByte('\n')
	}
	if d.left > 0 {
		fmt.Fprintf(b, "    # %d more fields of the records have no column here\n", d.left)
	}
}

// expected are the rows of a test as YAML mappings, with the columns in the order of the view.
func expected(view []job.ViewColumn, rows []map[string]*string) []string {
	out := make([]string, 0, len(rows))
	for _, row := range rows {
		var parts []string
		for _, c := range view {
			value, found := row[c.Name]
			if !found {
				continue
			}
			parts = append(parts, scalar(c.Name)+": "+literal(value))
		}
		out = append(out, "{"+strings.Join(parts, ", ")+"}")
	}
	slices.Sort(out)
	return out
}

// literal is a value of a row. Numbers and booleans need no quotes.
func literal(v *string) string {
	var number json.Number
	switch {
	case v == nil:
		return "null"
	case *v == "true", *v == "false":
		return *v
	case json.Unmarshal([]byte(*v), &number) == nil && number.String() == *v && !strings.ContainsAny(*v, "eE"):
		return *v
	}
	return scalar(*v)
}

// plainScalar matches texts that YAML reads as they are, also between braces.
var plainScalar = regexp.MustCompile(`^[A-Za-z$_][A-Za-z0-9_.$/-]*( [A-Za-z0-9_]+)*$`)

// yamlWords are texts without quotes that YAML does not read as texts.
var yamlWords = map[string]bool{
	"true": true, "false": true, "null": true, "yes": true, "no": true, "on": true,
	"off": true, "y": true, "n": true,
}

// scalar is a text as YAML, without quotes where it needs none.
func scalar(s string) string {
	if plainScalar.MatchString(s) && !yamlWords[strings.ToLower(s)] {
		return s
	}
	return quoted(s)
}

// quoted is a text in quotes, in which ${ is no variable.
func quoted(s string) string {
	s = strings.ReplaceAll(s, "${", "$${")
	if printable(s) {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// comment is a text for one line of comment.
func comment(s string) string { return cut(strings.Join(strings.Fields(job.Printable(s)), " "), 160) }
