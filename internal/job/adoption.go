package job

import "strings"

// Adoption is what it takes to put a serving view in the place of a relation that stands: what adopt prints before and does.
type Adoption struct {
	To   Ref
	View ViewName
	Kind string // table, partitioned table, foreign table, materialized view or view
	OID  int64
	// Owner stays the owner of the relation and becomes that of the view.
	Owner   string
	Columns []ViewColumn
	// Follow are the views over the relation that will read the serving view instead.
	Follow []string
	// Stay goes on with the relation under its new name: it cannot read a view.
	Stay []string
}

// Copied says that the relation keeps its place and that a copy of its definition gets the version's name: it is a view,
// whose readers follow it whatever it reads.
func (a Adoption) Copied() bool { return a.Kind == "view" }

// Layout reads the relation as it is.
func (a Adoption) Layout() Layout { return Layout{Shape: Adopted, View: a.Columns} }

// AdoptCommand is how adopt is typed for a job and its view.
func AdoptCommand(name Name, view ViewName) string {
	return "kappactl adopt " + string(name) + " --view " + shellWord(view.written())
}

// written is the name as ParseViewName reads it.
func (v ViewName) written() string {
	part := func(s string) string {
		if plainIdentifier.MatchString(s) {
			return s
		}
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return part(v.Schema) + "." + part(v.Name)
}

// shellWord quotes a word for a POSIX shell when it needs that.
func shellWord(s string) string {
	plain := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '.' }
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
