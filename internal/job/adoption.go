package job

import (
	"slices"
	"strings"
)

// Adoption is the plan of replacing an existing relation with a serving view: adopt prints it, then executes it.
type Adoption struct {
	To   Ref
	View ViewName
	Kind string // table, partitioned table, foreign table, materialized view or view
	OID  int64
	// Owner remains the owner of the relation and becomes the owner of the view.
	Owner   string
	Columns []ViewColumn
	// Follow are the views over the relation that will read the serving view instead.
	Follow []string
	// Stay are the dependants that remain on the relation under its new name, because they cannot read a view.
	Stay []string
}

// Copied reports whether the relation keeps its name and a copy of its definition gets the version's name. This applies
// to a view, whose readers follow it whatever it reads.
func (a Adoption) Copied() bool { return a.Kind == "view" }

// Layout returns the layout for reading the relation unchanged.
func (a Adoption) Layout() Layout { return Layout{Shape: Adopted, View: a.Columns} }

// KeyedAs returns the layout of an adopted relation with the same key columns as the version it is compared with.
func (l Layout) KeyedAs(like Layout) Layout {
	l.View, l.Keys = slices.Clone(l.View), like.Keys
	for i, v := range l.View {
		l.View[i].Key = slices.ContainsFunc(like.View,
			func(k ViewColumn) bool { return k.Key && k.Name == v.Name && k.Type == v.Type })
	}
	return l
}

// AdoptCommand returns the adopt command for a job and its view.
func AdoptCommand(name Name, view ViewName) string {
	return "kappactl adopt " + string(name) + " --view " + shellWord(view.written())
}

// written returns the name in the form that ParseViewName reads.
func (v ViewName) written() string {
	part := func(s string) string {
		if plainIdentifier.MatchString(s) {
			return s
		}
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return part(v.Schema) + "." + part(v.Name)
}

// shellWord quotes a word for a POSIX shell if necessary.
func shellWord(s string) string {
	plain := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '.' }
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// RollbackCommand returns the command that rolls back to a version. For an adopted version it accepts that kappactl
// does not update it.
func RollbackCommand(name Name, to Number) string {
	if (Ref{Job: name, Number: to}).Adopted() {
		return "kappactl rollback " + string(name) + " " + to.String() + " --stale"
	}
	return "kappactl rollback " + string(name)
}
