package job

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// place is the position of a value in the file; line and column from 1, columns in characters.
type place struct {
	line, column int
	style        yaml.Style
	text         string   // of a scalar, as in the file
	expanded     expanded // of a scalar with variables
}

func placesOf(d *strict.Document, variables map[*yaml.Node]expanded) map[string]place {
	places := map[string]place{}
	for _, path := range d.Paths() {
		n := d.Node(path)
		at := placeOf(n)
		if e, found := variables[n]; found {
			at.text, at.expanded = e.raw, e
		}
		places[path] = at
	}
	return places
}

// placeOf is the place of a node whose variables are not replaced.
func placeOf(n *yaml.Node) place {
	at := place{line: n.Line, column: n.Column, style: n.Style}
	if n.Kind == yaml.ScalarNode {
		at.text = n.Value
	}
	return at
}

// Where is the place of the value at path (query, source.columns.ts, checks[0].sql), or of the closest one above it.
// Both are 0 when the Spec was not read from a file.
func (s *Spec) Where(path string) (line, col int) {
	at, _ := s.place(path)
	return at.line, at.column
}

// place returns the place of path, or of the closest value that encloses it; found reports which.
func (s *Spec) place(path string) (at place, found bool) {
	for up := path; up != ""; {
		if at, ok := s.places[up]; ok {
			return at, up == path
		}
		cut := strings.LastIndexAny(up, ".[")
		if cut < 0 {
			break
		}
		up = up[:cut]
	}
	return s.places[""], path == ""
}

// Problem is a fault of the value at path. dialect is DuckDBSQL or PostgreSQL for SQL texts, else empty.
func (s *Spec) Problem(path, dialect, cause, cure string) Problem {
	line, column := s.Where(path)
	p := s.problem(strict.Fault{Line: line, Column: column, Path: path, Cause: cause, Cure: cure})
	p.Dialect = dialect
	return p
}

// ProblemAt returns a fault at a byte offset inside the text at path. If YAML spells the text in a way that hides the
// position of the offset (folded, or with escapes before it), the place is that of the whole text.
func (s *Spec) ProblemAt(path string, offset int, dialect, cause, cure string) Problem {
	p := s.Problem(path, dialect, cause, cure)
	at, found := s.place(path)
	offset = at.expanded.rawOffset(offset)
	if !found || offset < 0 || offset > len(at.text) {
		return p
	}
	if line, column, ok := s.inside(at, offset); ok {
		p.Line, p.Column = line, column
		p.Excerpt = excerpt(s.Text, line, column)
	}
	return p
}

// inside maps a byte offset of a scalar's value to its place in the file, where the file shows the value as it is.
func (s *Spec) inside(at place, offset int) (line, column int, ok bool) {
	before := at.text[:offset]
	row := strings.Count(before, "\n")
	before = before[strings.LastIndexByte(before, '\n')+1:]
	switch {
	case at.style&yaml.FoldedStyle != 0:
		return 0, 0, false
	case at.style&yaml.LiteralStyle != 0:
		values := strings.Split(at.text, "\n")
		line = at.line + 1 + row
		shown, found := lineOf(s.Text, line)
		indent := len(shown) - len(values[row])
		if !found || indent < 0 || shown[indent:] != values[row] {
			return 0, 0, false
		}
		return line, indent + utf8.RuneCountInString(before) + 1, true
	case row > 0:
		return 0, 0, false
	}
	shown, found := lineOf(s.Text, at.line)
	start := at.column - 1
	if at.style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		start++
	}
	runes := []rune(shown)
	if !found || start > len(runes) || !strings.HasPrefix(string(runes[start:]), before) {
		return 0, 0, false
	}
	return at.line, start + utf8.RuneCountInString(before) + 1, true
}

func (s *Spec) problem(f strict.Fault) Problem {
	return Problem{
		File: s.File, Line: f.Line, Column: f.Column, Path: f.Path, Cause: f.Cause, Cure: f.Cure,
		Excerpt: excerpt(s.Text, f.Line, f.Column),
	}
}

// lineOf is line n (from 1) of the text without its line end.
func lineOf(text []byte, n int) (string, bool) {
	rest := strings.TrimPrefix(string(text), "\ufeff")
	for ; n > 1; n-- {
		cut := strings.IndexByte(rest, '\n')
		if cut < 0 {
			return "", false
		}
		rest = rest[cut+1:]
	}
	rest, _, _ = strings.Cut(rest, "\n")
	return strings.TrimSuffix(rest, "\r"), n == 1
}

// excerptWidth is the most characters of a line that an excerpt shows.
const excerptWidth = 100

// excerpt shows a line with a caret below the column.
func excerpt(text []byte, line, column int) string {
	shown, found := lineOf(text, line)
	if !found || column < 1 || strings.TrimSpace(shown) == "" {
		return ""
	}
	runes := []rune(strings.Map(visible, shown))
	if column > len(runes)+1 {
		return ""
	}
	ahead, behind := "", ""
	if from := column - excerptWidth*2/3; from > 0 && len(runes) > excerptWidth {
		runes, column, ahead = runes[from:], column-from, "…"
	}
	if len(runes) > excerptWidth {
		runes, behind = runes[:excerptWidth], "…"
	}
	number := fmt.Sprintf("%5d", line)
	return fmt.Sprintf("%s | %s%s%s\n%s | %s^", number, ahead, string(runes), behind,
		strings.Repeat(" ", len(number)), strings.Repeat(" ", utf8.RuneCountInString(ahead)+column-1))
}

// visible keeps an excerpt to one line of one column a character, whatever is in the file.
func visible(r rune) rune {
	switch r {
	case '\t':
		return ' '
	case '\n':
		return '·'
	}
	if Steers(r) {
		return '·'
	}
	return r
}
