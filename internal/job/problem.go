package job

import (
	"fmt"
	"strings"
)

// Problem is one thing wrong with a job file: the place, the cause and the cure.
type Problem struct {
	File    string
	Line    int    // from 1; 0 when unknown
	Column  int    // from 1; 0 when unknown
	Path    string // query, source.columns.ts, …
	Dialect string // "DuckDB SQL" or "PostgreSQL SQL" for SQL texts, else empty
	Cause   string
	Cure    string
	Excerpt string // the line of the file with a caret below it
}

func (p Problem) String() string {
	var b strings.Builder
	switch {
	case p.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	case p.File != "":
		fmt.Fprintf(&b, "%s: ", p.File)
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	if p.Dialect != "" {
		b.WriteString(p.Dialect + ": ")
	}
	b.WriteString(p.Cause)
	if p.Excerpt != "" {
		b.WriteString("\n" + p.Excerpt)
	}
	if p.Cure != "" {
		b.WriteString("\n  fix: " + p.Cure)
	}
	return Printable(b.String())
}

// Problems is the error of a wrong job file; it holds at least one Problem.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
