package serving

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
)

// body writes the view's SELECT from the contract: its columns in its order, NULL for one that the version lacks, a
// COLLATE where only the collation differs, then the version's new columns. It returns the columns that the view has then.
func (c *Contract) body(text string, candidate []Column) ([]Column, string, error) {
	have := map[string]Column{}
	for _, v := range candidate {
		have[v.Name] = v
	}
	var columns []Column
	var items []string
	for _, want := range c.Columns {
		got, found := have[want.Name]
		want.Lacking = !found
		switch {
		case !found:
			items = append(items, "NULL::"+want.Type+collate(want)+" AS "+pgIdent(want.Name))
		case got.Type != want.Type:
			return nil, "", &job.Refusal{
				Code:  job.ExitUsage,
				Cause: fmt.Sprintf("column %q of the serving view is %s and this version has %s", want.Name, want.Type, got.Type),
				Next:  "deploy a version with the view's type (a cast in query repairs it), or use a new view",
			}
		case got.Collation != want.Collation:
			items = append(items, "q."+pgIdent(want.Name)+collate(want)+" AS "+pgIdent(want.Name))
		default:
			items = append(items, "q."+pgIdent(want.Name))
		}
		columns = append(columns, want)
		delete(have, want.Name)
	}
	for _, v := range candidate {
		if _, added := have[v.Name]; added {
			columns = append(columns, v)
			items = append(items, "q."+pgIdent(v.Name))
		}
	}
	if plain(columns, candidate) {
		return columns, text, nil
	}
	return columns, fmt.Sprintf("SELECT %s\nFROM (%s\n) AS q", strings.Join(items, ", "), text), nil
}

// plain reports whether the version's own SELECT gives exactly these columns.
func plain(columns, candidate []Column) bool {
	if len(columns) != len(candidate) {
		return false
	}
	for i := range columns {
		if columns[i] != candidate[i] {
			return false
		}
	}
	return true
}

func collate(c Column) string {
	if c.Collation == "" {
		return ""
	}
	return " COLLATE " + c.Collation
}

// pgIdent quotes for SQL that goes to pgx directly.
func pgIdent(name string) string { return pgx.Identifier{name}.Sanitize() }

// withOptions repeats a view's options: CREATE OR REPLACE VIEW drops what it does not name.
func withOptions(options []string) string {
	if len(options) == 0 {
		return ""
	}
	set := make([]string, len(options))
	for i, o := range options {
		name, value, _ := strings.Cut(o, "=")
		set[i] = pgIdent(name) + " = " + literal(value)
	}
	return " WITH (" + strings.Join(set, ", ") + ")"
}
