package serving

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
)

// body writes the view's SELECT from the contract: its columns in its order, NULL for one that the version lacks, a
// COLLATE where only the collation differs, then the version's new columns. It returns the columns that the view has
// then.
func (c *Contract) body(text string, candidate []Column) ([]Column, string, error) {
	items, err := c.items(candidate)
	if err != nil {
		return nil, "", err
	}
	columns := markLacking(c.Columns, candidate)
	for _, v := range candidate {
		if !slices.ContainsFunc(c.Columns, func(w Column) bool { return w.Name == v.Name }) {
			columns = append(columns, v)
			items = append(items, "q."+pgIdent(v.Name))
		}
	}
	if plain(columns, candidate) {
		return columns, text, nil
	}
	return columns, fmt.Sprintf("SELECT %s\nFROM (%s\n) AS q", strings.Join(items, ", "), text), nil
}

// items are the contract's columns over a relation q with the columns of a version.
func (c *Contract) items(candidate []Column) ([]string, error) {
	var items []string
	for _, want := range c.Columns {
		i := slices.IndexFunc(candidate, func(v Column) bool { return v.Name == want.Name })
		switch {
		case i < 0:
			items = append(items, "NULL::"+want.Type+collate(want)+" AS "+pgIdent(want.Name))
		case candidate[i].Type != want.Type:
			return nil, &job.Refusal{
				Code: job.ExitUsage,
				Cause: fmt.Sprintf("column %q of the serving view is %s and this version has %s", want.Name, want.Type,
					candidate[i].Type),
				Next: "deploy a version with the view's type (a cast in query repairs it), or use a new view",
			}
		case candidate[i].Collation != want.Collation:
			items = append(items, "q."+pgIdent(want.Name)+collate(want)+" AS "+pgIdent(want.Name))
		default:
			items = append(items, "q."+pgIdent(want.Name))
		}
	}
	return items, nil
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
